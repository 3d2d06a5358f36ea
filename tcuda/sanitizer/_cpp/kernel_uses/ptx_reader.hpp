// Reads the text of a PTX module.
#pragma once

#include <string_view>

#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"

namespace tcuda::kernel_uses::ptx {

// The text must outlive the module. A function that cannot be read to its end is left out.
Module read_module(std::string_view text);

} // namespace tcuda::kernel_uses::ptx
