#include "emulation/_cpp/kernels/races/race_log.hpp"

#include <algorithm>

namespace tcuda {

// The entry of two places, or the empty entry where they belong; null if the table is full.
RaceLog::Pair *RaceLog::pair_of(std::uint32_t one, std::uint32_t other) {
    if (pairs_.empty())
        return nullptr;
    const std::uint32_t low = std::min(one, other), high = std::max(one, other);
    const std::uint32_t start = (low * 0x9e3779b1u ^ high * 0x85ebca6bu) >> 8;
    for (unsigned step = 0; step < places; ++step) {
        Pair &pair = pairs_[(start + step) % places];
        if ((pair.low == low && pair.high == high) || pair.high == 0) {
            pair.low = low;
            pair.high = high;
            return &pair;
        }
    }
    return nullptr;
}

KernelRace *RaceLog::race_of(std::uint32_t one, std::uint32_t other, bool &is_new) {
    is_new = false;
    if (pairs_.empty()) {
        pairs_.resize(places, {0, 0, places});
        races_.reserve(most);
    }
    Pair *const pair = pair_of(one, other);
    if (pair == nullptr)
        return nullptr;
    if (pair->number == places) {
        if (races_.size() == most) {
            pair->number = most;
            ++left_out_;
            return nullptr;
        }
        is_new = true;
        pair->number = static_cast<std::uint32_t>(races_.size());
        races_.push_back({});
    }
    return pair->number == most ? nullptr : &races_[pair->number];
}

KernelRace *RaceLog::find(std::uint32_t one, std::uint32_t other) {
    Pair *const pair = pair_of(one, other);
    return pair == nullptr || pair->number >= most ? nullptr : &races_[pair->number];
}

} // namespace tcuda
