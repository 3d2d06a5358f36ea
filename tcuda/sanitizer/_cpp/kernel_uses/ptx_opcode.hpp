// What the opcode of a PTX instruction does with numbers.
#pragma once

#include <string_view>

#include "sanitizer/_cpp/kernel_uses/program.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_operation.hpp"

namespace tcuda::kernel_uses::ptx {

// A step without operands.
Step step_of(std::string_view opcode, const Operation &operation);

// Whether the instruction uses memory in a way that can wait for other threads, or that other threads can wait for.
bool is_strong(std::string_view opcode);

} // namespace tcuda::kernel_uses::ptx
