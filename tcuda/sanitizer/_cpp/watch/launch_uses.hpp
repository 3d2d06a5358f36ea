// What the launch of a kernel uses: the interface between the watch and the reader of launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "driver/libcuda_types.hpp"
#include "sanitizer/_cpp/kernel_uses/program.hpp"
#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda::watch {

using Module = std::uintptr_t; // CUmodule or CUlibrary

// The arguments of a launch. Either `parameters` or `extra` is null, and both are null for a kernel without parameters.
struct Launch {
    libcuda::Function function = 0; // a CUfunction or a CUkernel
    const char *name = nullptr; // the (mangled) name of the kernel; null if it is unknown
    void **parameters = nullptr; // the addresses of the parameters
    void **extra = nullptr; // a list that ends with 0 and has the parameter block (CU_LAUNCH_PARAM_BUFFER_POINTER)
    kernel_uses::LaunchSizes sizes; // all 0 if unknown

    void set_sizes(const unsigned grid[3], const unsigned block[3]) {
        std::copy_n(grid, 3, sizes.grid.begin());
        std::copy_n(block, 3, sizes.block.begin());
    }
};

// The name and the uses of an operation. Both are valid until the thread asks again.
struct NamedOperation {
    std::string_view name;
    races::RaceDetector::NamedUses uses;
};

// Any thread may call any function. The notes of the thread are in innermost_notes().
class LaunchUses {
public:
    virtual ~LaunchUses() = default;

    // Whether a launch of this thread may use memory that the detector knows now. If not, uses_of() returns no uses.
    virtual bool may_use_memory() const { return true; }

    virtual NamedOperation uses_of(const Launch &launch) = 0;

    // `image` is what the program has passed: PTX, machine code or a fat binary; null if unknown.
    virtual void module_loaded(Module, const void * /*image*/) {}
    virtual void module_unloaded(Module) {}
};

} // namespace tcuda::watch
