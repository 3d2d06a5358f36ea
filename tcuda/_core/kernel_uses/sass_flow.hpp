// The flow of pointers through the machine code of one kernel.
#pragma once

#include <map>
#include <string>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/kernel_use.hpp"
#include "kernel_uses/sass_listing.hpp"

namespace tcuda::kernel_uses {

// `steps` counts the instructions that are followed, for all kernels of a listing together. A kernel that is too large,
// or that has a branch whose target is unknown, has no pointers and is not complete.
KernelUse follow_pointers(const SassListing &listing, const SassListing::Section &kernel, const ParameterBlock &block,
                          const std::map<std::int64_t, std::string> &linked_functions, std::size_t &steps);

} // namespace tcuda::kernel_uses
