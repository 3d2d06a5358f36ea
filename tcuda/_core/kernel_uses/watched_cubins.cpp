#include "kernel_uses/watched_cubins.hpp"

#include <chrono>
#include <cstddef>

#include "kernel_uses/cubin_uses.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::chrono::seconds most_together(20), most_for_one(5);

// Made when the library is loaded, because the process may fork at a first use. Never freed: kernels may be launched while
// the process exits.
TimeBudget &time_of_all = *new TimeBudget(most_together);

} // namespace

TimeBudget &watched_cubins_time() { return time_of_all; }

KernelUses uses_of_watched_cubin(std::string_view cubin, const char *kernel) {
    const TimeBudget::Share share(watched_cubins_time(), most_for_one);
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(share.time());
    return uses_of_cubin(reinterpret_cast<const std::byte *>(cubin.data()), cubin.size(), kernel, Disassembler::usual(),
                         limit);
}

} // namespace tcuda::kernel_uses
