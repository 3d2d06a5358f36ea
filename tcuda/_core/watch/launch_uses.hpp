// What the launch of a kernel uses: the interface between the watch and the reader of launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "driver/libcuda_types.hpp"
#include "races/race_detector.hpp"

namespace tcuda::watch {

using Module = std::uintptr_t; // CUmodule

// The arguments of a launch. Either `parameters` or `extra` is null, and both are null for a kernel without parameters.
struct Launch {
    libcuda::Function function = 0; // a CUfunction or a CUkernel
    const char *name = nullptr;     // the (mangled) name of the kernel; null if it is unknown
    void **parameters = nullptr;    // the addresses of the parameters
    void **extra = nullptr;         // a list that ends with 0 and has the parameter block (CU_LAUNCH_PARAM_BUFFER_POINTER)
};

// The name and the uses of an operation. Both are valid until the thread asks again.
struct NamedOperation {
    std::string_view name;
    races::RaceDetector::NamedUses uses;
};

// A cubin that the driver has loaded. The bytes may be gone after the call.
struct LoadedCubin {
    std::uint32_t number; // CUPTI's number of the module
    const std::byte *bytes;
    std::size_t size;
};

// A module that a call of the driver has returned.
struct LoadedModule {
    Module module = 0;           // CUmodule, or CUlibrary if `is_library`
    bool is_library = false;
    const void *image = nullptr; // what the program has passed: PTX, a cubin or a fat binary; null if unknown
    // The numbers of the cubins that were loaded during the call; the driver may load more cubins later.
    const std::uint32_t *cubins = nullptr;
    std::size_t cubin_count = 0;
};

// Any thread may call any function. The notes of the thread are in innermost_notes().
class LaunchUses {
public:
    virtual ~LaunchUses() = default;

    // Whether a launch of this thread may use memory that the detector knows now. If not, uses_of() returns no uses.
    virtual bool may_use_memory() const { return true; }

    virtual NamedOperation uses_of(const Launch &launch) = 0;

    virtual void cubin_loaded(const LoadedCubin &) {}
    virtual void cubin_unloaded(std::uint32_t /*number*/) {}
    virtual void module_loaded(const LoadedModule &) {}
    virtual void module_unloaded(Module /*module or library*/) {}
};

} // namespace tcuda::watch
