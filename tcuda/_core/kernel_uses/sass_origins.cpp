#include "kernel_uses/sass_origins.hpp"

#include <algorithm>
#include <iterator>

namespace tcuda::kernel_uses {
namespace {

// A kernel that mixes more pointers than this is not followed pointer by pointer.
constexpr std::size_t most_members = 256;

} // namespace

bool OriginSets::holds(Origins set, std::uint32_t origin) const {
    return std::binary_search(members(set).begin(), members(set).end(), origin);
}

Origins OriginSets::joined(Origins left, Origins right) {
    if (left == right || right == 0)
        return left;
    if (left == 0)
        return right;
    const std::uint64_t key = std::uint64_t(std::min(left, right)) << 32 | std::max(left, right);
    const auto known = joins_.find(key);
    if (known != joins_.end())
        return known->second;
    std::vector<std::uint32_t> both;
    std::set_union(members(left).begin(), members(left).end(), members(right).begin(), members(right).end(),
                   std::back_inserter(both));
    if (both.size() > most_members) {
        both.erase(std::lower_bound(both.begin(), both.end(), std::uint32_t(any_word)), both.end());
        both.push_back(any_word);
    }
    return joins_[key] = number_of(std::move(both));
}

Origins OriginSets::number_of(std::vector<std::uint32_t> members) {
    const auto [place, fresh] = numbers_.emplace(std::move(members), Origins(sets_.size()));
    if (fresh)
        sets_.push_back(&place->first);
    return place->second;
}

} // namespace tcuda::kernel_uses
