// The program of a kernel from its PTX.
#pragma once

#include <memory>

#include "sanitizer/_cpp/kernel_uses/program.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"

namespace tcuda::kernel_uses::ptx {

// Null for a kernel that is too long, or that has registers that are vectors.
std::shared_ptr<const Program> program_of(const Module &module, const Function &entry);

} // namespace tcuda::kernel_uses::ptx
