// What the kernels of a PTX module do with the memory that their parameters point to.
#pragma once

#include <string_view>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// Any text is allowed: a kernel that cannot be read is left out, and a kernel that cannot be followed is not complete.
KernelUses uses_of_ptx(std::string_view text);

} // namespace tcuda::kernel_uses
