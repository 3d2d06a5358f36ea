#include "kernel_uses/sass_parameters.hpp"

#include <algorithm>

namespace tcuda::kernel_uses {
namespace {

// Constant bank 0 below the parameters, by where the parameters begin.
struct BankLayout {
    std::int64_t base;
    std::int64_t stack;                // the stack pointer at the begin of the kernel
    std::int64_t windows, windows_end; // the addresses where own memory begins, of 8 bytes each
    std::int64_t block, block_offset;  // an address of the parameter block, and how far behind it the parameters begin
    std::int64_t workspace;            // the low half of the address of what the threads of a grid synchronize with
};

constexpr BankLayout layouts[] = {
    {0x160, 0x28, 0x18, 0x28, 0x40, 0x160, 0x90},
    {0x210, 0x28, 0x18, 0x28, 0x198, 0, 0x48},
    {0x380, 0x37c, 0x2f0, 0x300, 0x348, 0, -1},
};

constexpr std::int64_t most_block_bytes = 1 << 16;

std::int64_t base_of(unsigned architecture) {
    return architecture < 70 ? 0 : architecture < 90 ? 0x160 : architecture < 100 ? 0x210 : 0x380;
}

} // namespace

SassParameters::SassParameters(const ParameterBlock &block, unsigned architecture)
    : block_(block), base_(block.base ? std::int64_t(*block.base) : base_of(architecture)) {
    if (std::none_of(std::begin(layouts), std::end(layouts),
                     [&](const BankLayout &layout) { return layout.base == base_; }))
        base_ = 0;
}

SassValue SassParameters::bank_value(OriginSets &sets, std::int64_t offset) const {
    if (offset >= base_)
        return word(sets, offset - base_);
    const BankLayout &layout = *std::find_if(std::begin(layouts), std::end(layouts),
                                             [&](const BankLayout &layout) { return layout.base == base_; });
    if (offset == layout.stack)
        return {sets.single(own_memory), 0, true};
    // The low half counts as zero, so that an address in a window stays the distance to the stack that it was.
    if (offset >= layout.windows && offset < layout.windows_end)
        return offset % 8 == 0 ? SassValue{0, 0, true} : SassValue{sets.single(own_memory), 0, false};
    if (offset == layout.workspace)
        return {sets.single(module_memory), 0, false};
    if (offset == layout.block)
        return {sets.single(block_address), std::int32_t(-layout.block_offset), true};
    return {};
}

SassValue SassParameters::word(OriginSets &sets, std::int64_t offset) const {
    if (offset < 0 || offset % 8 != 0 || offset >= most_block_bytes)
        return {};
    const auto at = std::size_t(offset);
    const bool inside =
        std::any_of(block_.parameters.begin(), block_.parameters.end(), [&](const Parameter &parameter) {
            return parameter.offset <= at && parameter.size >= 8 && at - parameter.offset <= parameter.size - 8;
        });
    if (!inside && !block_.parameters.empty())
        return {};
    return {sets.single(std::uint32_t(first_word + at / 8)), 0, false};
}

bool SassParameters::far_below(std::int64_t offset) const { return offset < base_ - 0x100; }

bool SassParameters::in_member(std::int64_t offset) const {
    return std::any_of(block_.parameters.begin(), block_.parameters.end(), [&](const Parameter &parameter) {
        const std::int64_t begin = base_ + std::int64_t(parameter.offset);
        return parameter.size > 8 && offset >= begin && offset < begin + std::int64_t(parameter.size);
    });
}

bool SassParameters::marked(std::uint32_t origin) const {
    return origin >= first_word && std::find(block_.pointers.begin(), block_.pointers.end(),
                                             (origin - first_word) * 8) != block_.pointers.end();
}

bool SassParameters::plain(std::uint32_t origin) const {
    if (origin < first_word || block_.pointers.empty() || marked(origin))
        return false;
    const std::size_t at = (origin - first_word) * 8;
    return std::any_of(block_.parameters.begin(), block_.parameters.end(),
                       [&](const Parameter &parameter) { return parameter.offset == at && parameter.size == 8; });
}

} // namespace tcuda::kernel_uses
