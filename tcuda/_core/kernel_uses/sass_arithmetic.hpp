// The instructions that move values between registers and compute.
#pragma once

#include "kernel_uses/sass_thread.hpp"

namespace tcuda::kernel_uses {

// Writes the results of an instruction that uses no memory into the registers of the thread.
void move_values(SassThread &thread, const Instruction &instruction);

} // namespace tcuda::kernel_uses
