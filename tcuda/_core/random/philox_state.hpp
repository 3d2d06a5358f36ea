// The state of a Philox4x32-10 generator, as torch has it: a seed and an offset. The offset says how many numbers of 32
// bits every subsequence has given.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "driver/status.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// Lock rule: every member function holds `mutex_` for its own duration. Under it, draw() calls the driver.
class PhiloxState {
public:
    using Words = std::pair<std::uint64_t, std::uint64_t>;

    PhiloxState(std::uint64_t seed, std::uint64_t offset) : seed_(seed), offset_(offset) {}

    Words read() const {
        const Lock lock(mutex_);
        return {seed_, offset_};
    }
    void write(std::uint64_t seed, std::uint64_t offset) {
        const Lock lock(mutex_);
        seed_ = seed;
        offset_ = offset;
    }
    void move_to(std::uint64_t offset) {
        const Lock lock(mutex_);
        offset_ = offset;
    }
    // Moves the offset. Returns the seed and the offset before the move: that part of the sequence belongs to the
    // caller.
    Words advance(std::uint64_t increment) {
        const Lock lock(mutex_);
        return {seed_, std::exchange(offset_, offset_ + increment)};
    }
    // Calls `use` with the seed and the offset, which `use` may change. The offset changes only if `use` returns
    // success.
    template <typename Use> int draw(Use use) {
        const Lock lock(mutex_);
        std::uint64_t offset = offset_;
        const int status = use(seed_, offset);
        if (status == success)
            offset_ = offset;
        return status;
    }

private:
    mutable std::mutex mutex_;
    std::uint64_t seed_, offset_;
};

} // namespace tcuda
