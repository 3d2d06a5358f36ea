#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::watch {

constexpr std::size_t word = sizeof(std::uint64_t); // bytes of a pointer in the parameters of a launch

// Where the knowledge of a kernel comes from.
enum class UseSource : std::uint8_t { nothing, description, ptx, name };

// Bytes of the parameters of a launch. `parameter` is the place of the parameter in the list of the parameters.
struct ParameterBytes {
    static constexpr std::size_t unknown = ~std::size_t(0);
    std::size_t offset = 0; // in the parameter block
    std::size_t parameter = unknown;
    std::size_t inside = 0; // the offset in the parameter
};

// What is known of one kernel. The object does not change after its construction.
struct KnownKernel {
    struct Pointer {
        ParameterBytes place;
        kernel_uses::Kind kind;
        bool possible;
        int dimensions; // of a CArray; -1 for a pointer without a known extent
        std::size_t itemsize;
        std::string label;
    };

    // Whether the kernel has the name, which is null if nobody knows the name.
    bool has_name(const char *other) const { return other == nullptr || name == other; }

    std::string name;
    UseSource source = UseSource::nothing;
    bool complete = false; // whether the kernel uses no memory but that of `pointers`
    std::vector<Pointer> pointers;
    std::vector<ParameterBytes> others; // the other words, each of which may be a pointer if the kernel is not complete
    std::shared_ptr<const kernel_uses::Program> program; // null if the code is unknown
    bool layout_known = false; // whether the places of the parameters in the list are known
};

} // namespace tcuda::watch
