// What a kernel does with the memory that its parameters point to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tcuda::kernel_uses {

struct Program;

// Bits: read and write together are both. `none`: the kernel has the pointer and does not use it.
enum class Kind : std::uint8_t { none = 0, read = 1, write = 2, both = 3 };

inline Kind operator|(Kind left, Kind right) { return Kind(std::uint8_t(left) | std::uint8_t(right)); }

// Bytes of the parameter block of a kernel.
struct Parameter {
    std::size_t offset, size;
};

// A pointer in the parameter block.
struct PointerUse {
    std::size_t offset = 0;
    Kind kind = Kind::none;
    bool possible = false; // whether the kernel may do less than `kind` says
    // If at least 0: the pointer begins a CArray of CuPy, that is {data, size, shape[dimensions], strides[dimensions]},
    // whose items have `itemsize` bytes. Otherwise the extent of the memory is unknown.
    int dimensions = -1;
    std::size_t itemsize = 0;
    std::string label; // the name of the parameter, if it is known
};

struct KernelUse {
    std::vector<Parameter> parameters; // in the order of the kernel; empty if unknown
    std::vector<PointerUse> pointers;
    // Whether the kernel uses no memory but that of `pointers`. Otherwise any word of the parameter block that points
    // into live memory may be read and written.
    bool complete = false;
    std::shared_ptr<const Program> program; // null if the code of the kernel is unknown
};

using KernelUses = std::map<std::string, KernelUse>; // by the (mangled) name of the kernel

} // namespace tcuda::kernel_uses
