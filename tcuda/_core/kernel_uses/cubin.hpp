// The kernels of a cubin: NVIDIA's ELF file of machine code for one architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// Where a kernel finds its parameters.
struct ParameterBlock {
    std::vector<Parameter> parameters; // in the order of the kernel
    std::vector<std::size_t> pointers; // offsets of the parameters that the compiler marks as pointers; often empty
    std::optional<std::size_t> base;   // of the parameters in constant bank 0
};

struct CubinKernel {
    ParameterBlock block;
    std::uint32_t symbol = 0; // the index of the kernel in the symbol table
};

struct Cubin {
    std::map<std::string, CubinKernel> kernels;
    std::vector<std::uint32_t> functions; // symbols of the functions that kernels may call, in sections of their own
    // The functions of CUDA itself whose addresses the linker puts into constant bank 4, by their offsets.
    std::map<std::int64_t, std::string> linked_functions;
};

// None if the bytes are no cubin, or are damaged. The bytes are not trusted.
std::optional<Cubin> read_cubin(const std::byte *data, std::size_t size);

} // namespace tcuda::kernel_uses
