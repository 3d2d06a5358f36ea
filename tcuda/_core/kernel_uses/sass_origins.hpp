// Where the value of a register may come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace tcuda::kernel_uses {

// An origin is one of these, or `first_word` and more: the 8 bytes of the parameter block at 8 * (origin - first_word).
enum Origin : std::uint32_t {
    wide_load,     // 64 bits or more from memory, which may be a pointer
    narrow_load,   // fewer bits from memory: half of a pointer at most
    module_memory, // the address of a variable of the kernel's module
    own_memory,    // the address of memory of the thread or of the thread block (stack, shared memory)
    block_address, // the address of the parameter block
    member_word,   // some word of a parameter that has more than 8 bytes
    any_word,      // some word of the parameter block
    first_word,
};

// A set of origins, by its number. Equal sets have equal numbers. Number 0 is the empty set: a plain number.
using Origins = std::uint32_t;

class OriginSets {
public:
    OriginSets() { number_of({}); }

    const std::vector<std::uint32_t> &members(Origins set) const { return *sets_[set]; } // sorted
    bool holds(Origins set, std::uint32_t origin) const;
    Origins single(std::uint32_t origin) { return number_of({origin}); }
    Origins joined(Origins left, Origins right);
    template <typename Keep> Origins filtered(Origins set, Keep keep) {
        std::vector<std::uint32_t> kept;
        for (const std::uint32_t origin : members(set))
            if (keep(origin))
                kept.push_back(origin);
        return kept.size() == members(set).size() ? set : number_of(std::move(kept));
    }

private:
    Origins number_of(std::vector<std::uint32_t> members);

    std::map<std::vector<std::uint32_t>, Origins> numbers_;
    std::vector<const std::vector<std::uint32_t> *> sets_; // the keys of `numbers_`
    std::unordered_map<std::uint64_t, Origins> joins_;
};

} // namespace tcuda::kernel_uses
