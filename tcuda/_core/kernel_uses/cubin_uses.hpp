// What the kernels of a cubin do with memory.
#pragma once

#include "kernel_uses/disassembler.hpp"
#include "kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// The uses of one kernel, or of all kernels if `kernel` is null. Empty if the bytes are no cubin. Without a listing of
// the disassembler, the kernels have parameters and no pointers. One run of the disassembler takes about half a second,
// for one kernel as for a hundred small kernels.
KernelUses uses_of_cubin(const std::byte *data, std::size_t size, const char *kernel = nullptr,
                         const Disassembler &disassembler = Disassembler::usual(),
                         std::chrono::milliseconds limit = std::chrono::seconds(5));

} // namespace tcuda::kernel_uses
