// What kernels do with memory, by their machine code.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// Reads what NVIDIA's `nvdisasm -c` prints. Without its parameter block a kernel has no parameters, and its block begins
// where the architecture lets it begin. The text is not trusted.
KernelUses uses_of_sass(std::string_view listing, const std::map<std::string, ParameterBlock> &blocks = {});

} // namespace tcuda::kernel_uses
