// The order of the accesses of a block by its barriers and by the functions of its warps.
#pragma once

#include <cstdint>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"

namespace tcuda {

// A time in the life of a block: the number of barriers that the block has passed, plus one, and the steps of a thread
// since the last of them.
struct BlockTime {
    std::uint32_t generation = 0, step = 0; // 0, 0 is before all times

    bool operator<(const BlockTime &other) const {
        return generation != other.generation ? generation < other.generation : step < other.step;
    }
};

// The threads of a block are known by their ranks.
class BlockClock {
public:
    static constexpr unsigned lanes = 32;

    explicit BlockClock(unsigned threads);

    void start_block(std::uint32_t block);
    void pass_barrier();

    // The times of a block that rests while another block runs.
    struct Resting {
        std::uint32_t block, generation;
        std::vector<std::uint32_t> steps, known;
        std::vector<unsigned char> joined;
    };
    Resting resting() const { return {block_, generation_, steps_, known_, joined_}; }
    void go_on_with(const Resting &resting);
    // The lanes of a warp meet: what one of them has done is known to all of them.
    void join(unsigned warp, std::uint32_t lanes);
    // Others may learn of what the thread has done so far, but not of what the thread does from now on.
    void advance(unsigned thread) {
        // The next step of the phase has a stamp of its own. now() makes the stamp of a later phase.
        const bool same_phase = (++steps_[thread] & ((1u << stamps::step_bits) - 1)) != 0;
        stamps_[thread] = same_phase && stamps_[thread] != 0 ? stamps_[thread] + stamps::of(0, 1, 0) : 0;
    }

    // The stamp of an access of the thread now, without the place of the code.
    AccessStamp now(unsigned thread) { return stamps_[thread] != 0 ? stamps_[thread] : next_stamp(thread); }
    // The same of all threads; 0 where now() has to make the stamp.
    const AccessStamp *stamps() const { return stamps_.data(); }
    BlockTime time(unsigned thread) const { return {generation_, steps_[thread]}; }

    std::uint32_t block() const { return block_; }
    std::uint32_t generation() const { return generation_; }
    std::uint32_t block_of(AccessStamp stamp) const { return phases_[stamps::phase(stamp)].block; }
    BlockTime time_of(AccessStamp stamp) const;
    bool of_this_block(AccessStamp stamp) const { return block_of(stamp) == block_; }
    // Whether an access of this block comes before the last barrier.
    bool before_barrier(AccessStamp stamp) const { return phases_[stamps::phase(stamp)].generation < generation_; }
    // The first phases since the block has begun, or has gone on after a rest.
    unsigned first_of_block() const { return first_of_block_; }
    unsigned first_of_generation() const { return first_of_generation_; }

    // Whether the thread knows of an access of this block.
    bool knows(unsigned thread, AccessStamp stamp) const {
        return before_barrier(stamp) || stamps::thread(stamp) == thread || knows_lane(thread, stamp);
    }
    // Whether the thread of an access of this block has met other threads since: at a barrier or a function of its
    // warp.
    bool before_meeting(AccessStamp stamp) const {
        return before_barrier(stamp) || knows_lane(stamps::thread(stamp), stamp);
    }
    // For each lane of the thread's warp, the number of its first step of which the thread does not know.
    const std::uint32_t *known_steps(unsigned thread) const { return &known_[thread * lanes]; }
    bool has_joined(unsigned thread) const { return joined_[thread / lanes] != 0; }
    // Whether stamps are left.
    bool has_phases() const { return has_phases_; }

private:
    // The steps of a phase have the same upper bits.
    struct Phase {
        std::uint32_t block, generation, upper;
    };

    AccessStamp next_stamp(unsigned thread);
    bool knows_lane(unsigned thread, AccessStamp stamp) const;
    void start_generation();

    const unsigned threads_;
    std::uint32_t block_ = 0, generation_ = 0;
    unsigned first_of_block_ = 1, first_of_generation_ = 1;
    std::vector<AccessStamp> stamps_; // 0 if not known yet
    std::vector<std::uint32_t> steps_;
    std::vector<std::uint32_t> known_;
    std::vector<unsigned char> joined_; // for each warp, whether its lanes have met since the last barrier
    std::vector<Phase> phases_;
    bool has_phases_ = true;
};

} // namespace tcuda
