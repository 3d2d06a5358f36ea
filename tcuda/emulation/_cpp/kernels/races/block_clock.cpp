#include "emulation/_cpp/kernels/races/block_clock.hpp"

#include <algorithm>

namespace tcuda {

BlockClock::BlockClock(unsigned threads)
    : threads_(threads), stamps_(threads), steps_(threads), known_((threads + lanes - 1) / lanes * lanes * lanes),
      joined_((threads + lanes - 1) / lanes), phases_(1) {}

void BlockClock::start_block(std::uint32_t block) {
    block_ = block;
    generation_ = 0;
    start_generation();
    first_of_block_ = first_of_generation_;
}

// The phases of other blocks lie between, so that the stamps from now on have phases of their own.
void BlockClock::go_on_with(const Resting &resting) {
    block_ = resting.block;
    generation_ = resting.generation;
    steps_ = resting.steps;
    known_ = resting.known;
    joined_ = resting.joined;
    first_of_block_ = first_of_generation_ = static_cast<unsigned>(phases_.size());
    std::fill(stamps_.begin(), stamps_.end(), 0);
}

void BlockClock::pass_barrier() { start_generation(); }

void BlockClock::start_generation() {
    ++generation_;
    first_of_generation_ = static_cast<unsigned>(phases_.size());
    phases_.push_back({block_, generation_, 0});
    has_phases_ = phases_.size() < 1u << stamps::phase_bits;
    for (unsigned thread = 0; thread < threads_; ++thread)
        stamps_[thread] = stamps::of(first_of_generation_, 0, thread);
    std::fill(steps_.begin(), steps_.end(), 0);
    for (unsigned warp = 0; warp < joined_.size(); ++warp) {
        if (joined_[warp] == 0)
            continue;
        joined_[warp] = 0;
        std::fill_n(known_.begin() + warp * lanes * lanes, lanes * lanes, 0);
    }
}

void BlockClock::join(unsigned warp, std::uint32_t members) {
    joined_[warp] = 1;
    std::uint32_t *const all = &known_[warp * lanes * lanes];
    std::uint32_t together[lanes] = {};
    // The loop finds what the members know of other lanes. If all lanes are members, there are no other lanes.
    for (std::uint32_t rest = ~members == 0 ? 0 : members; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
        const std::uint32_t *const known = all + lane * lanes;
        for (unsigned other = 0; other < lanes; ++other)
            together[other] = std::max(together[other], known[other]);
    }
    for (std::uint32_t rest = members; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
        const unsigned thread = warp * lanes + lane;
        together[lane] = steps_[thread] + 1;
        advance(thread);
    }
    for (std::uint32_t rest = members; rest != 0; rest &= rest - 1)
        std::copy_n(together, lanes, all + static_cast<unsigned>(__builtin_ctz(rest)) * lanes);
}

BlockTime BlockClock::time_of(AccessStamp stamp) const {
    const Phase &phase = phases_[stamps::phase(stamp)];
    return {phase.generation, phase.upper << stamps::step_bits | stamps::step(stamp)};
}

bool BlockClock::knows_lane(unsigned thread, AccessStamp stamp) const {
    const unsigned other = stamps::thread(stamp);
    return other / lanes == thread / lanes && has_joined(thread) &&
           time_of(stamp).step < known_[thread * lanes + other % lanes];
}

AccessStamp BlockClock::next_stamp(unsigned thread) {
    const std::uint32_t upper = steps_[thread] >> stamps::step_bits;
    auto phase = first_of_generation_;
    while (phase < phases_.size() && phases_[phase].upper != upper)
        ++phase;
    if (phase == phases_.size()) {
        phases_.push_back({block_, generation_, upper});
        has_phases_ = phases_.size() < 1u << stamps::phase_bits;
    }
    return stamps_[thread] = stamps::of(phase, steps_[thread] & ((1u << stamps::step_bits) - 1), thread);
}

} // namespace tcuda
