// What the constants of a kernel are: its parameters, and numbers that the driver gives.
#pragma once

#include "kernel_uses/cubin.hpp"
#include "kernel_uses/sass_origins.hpp"
#include "kernel_uses/sass_state.hpp"

namespace tcuda::kernel_uses {

class SassParameters {
public:
    SassParameters(const ParameterBlock &block, unsigned architecture);

    // Whether the place of the parameters is known.
    bool known() const { return base_ != 0; }
    // The 32 bits at `offset` of constant bank 0.
    SassValue bank_value(OriginSets &sets, std::int64_t offset) const;
    // The 32 bits at `offset` of the parameter block.
    SassValue word(OriginSets &sets, std::int64_t offset) const;
    // Whether the place in constant bank 0 belongs to a parameter of more than 8 bytes, in which a kernel may index.
    bool in_member(std::int64_t offset) const;
    // Whether a place in constant bank 0 is so far in front of the parameters that no index leads from it to them.
    bool far_below(std::int64_t offset) const;
    // Whether the origin is a parameter that the compiler marks as a pointer.
    bool marked(std::uint32_t origin) const;
    // Whether the origin is a number of 8 bytes in a kernel whose pointers are marked.
    bool plain(std::uint32_t origin) const;

    // Calls `use` with the offset of each word that the origin stands for. False if the words are unknown.
    template <typename Use> bool each_word(std::uint32_t origin, Use use) const {
        if (origin >= first_word) {
            use(std::size_t(origin - first_word) * 8);
            return true;
        }
        if (block_.parameters.empty())
            return false;
        for (const Parameter &parameter : block_.parameters)
            if (origin == any_word || parameter.size > 8)
                for (std::size_t at = (parameter.offset + 7) / 8 * 8; at + 8 <= parameter.offset + parameter.size;
                     at += 8)
                    use(at);
        return true;
    }

private:
    const ParameterBlock &block_;
    std::int64_t base_ = 0;
};

} // namespace tcuda::kernel_uses
