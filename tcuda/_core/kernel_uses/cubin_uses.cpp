#include "kernel_uses/cubin_uses.hpp"

#include <algorithm>

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/sass_uses.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t most_functions = 64; // that a kernel may call in sections of their own

} // namespace

KernelUses uses_of_cubin(const std::byte *data, std::size_t size, const char *kernel, const Disassembler &disassembler,
                         std::chrono::milliseconds limit) {
    const auto cubin = read_cubin(data, size);
    if (!cubin)
        return {};
    KernelUses uses;
    SassFacts facts;
    facts.linked_functions = cubin->linked_functions;
    std::vector<std::uint32_t> symbols;
    for (const auto &[name, found] : cubin->kernels) {
        if (kernel != nullptr && name != kernel)
            continue;
        uses[name].parameters = found.block.parameters;
        facts.blocks[name] = found.block;
        if (kernel != nullptr)
            symbols.push_back(found.symbol);
    }
    if (uses.empty())
        return uses;
    if (kernel != nullptr)
        symbols.insert(symbols.end(), cubin->functions.begin(),
                       cubin->functions.begin() + std::ptrdiff_t(std::min(cubin->functions.size(), most_functions)));
    if (const auto listing = disassembler.listing(data, size, symbols, limit))
        for (auto &[name, use] : uses_of_sass(*listing, facts))
            if (const auto found = uses.find(name); found != uses.end())
                found->second = std::move(use);
    return uses;
}

} // namespace tcuda::kernel_uses
