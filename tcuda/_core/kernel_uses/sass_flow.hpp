// The flow of pointers through the machine code of one kernel.
#pragma once

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/sass_listing.hpp"

namespace tcuda::kernel_uses {

// A kernel that is too large, or that has a branch whose target is unknown, has no pointers and is not complete.
KernelUse follow_pointers(const SassListing &listing, const SassListing::Section &kernel, const ParameterBlock &block);

} // namespace tcuda::kernel_uses
