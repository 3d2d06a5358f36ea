// What kernels do with memory, by their machine code.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// Facts that the listing does not tell. A kernel without a parameter block here has no parameters, and its block begins
// at the usual place of the architecture.
struct SassFacts {
    std::map<std::string, ParameterBlock> blocks;         // by kernel
    std::map<std::int64_t, std::string> linked_functions; // as those of a cubin
};

// Reads what NVIDIA's `nvdisasm -c` prints. The text is not trusted.
KernelUses uses_of_sass(std::string_view listing, const SassFacts &facts = {});

} // namespace tcuda::kernel_uses
