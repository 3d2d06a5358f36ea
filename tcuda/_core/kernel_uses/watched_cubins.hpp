// The analysis of cubins for a race detector that watches the process.
#pragma once

#include <string_view>

#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/time_budget.hpp"

namespace tcuda::kernel_uses {

// How long the analyses of this process may still take. The launch of a kernel waits for the analysis of its code, so a
// program with hundreds of kernels without PTX would wait for minutes.
TimeBudget &watched_cubins_time();

// As uses_of_cubin(), with the usual disassembler, as long as there is time. Later only the parameters are known.
KernelUses uses_of_watched_cubin(std::string_view cubin, const char *kernel);

} // namespace tcuda::kernel_uses
