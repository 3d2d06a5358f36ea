// The state of a Philox4x32-10 generator, and which kernels fill an array from it: both as torch has them.
//
// Every thread of a kernel draws from a subsequence of its own, by its index in the grid. A draw gives four numbers of 32
// bits, or two of 64: the lanes. They lie a whole grid apart in the array, and after its lanes a thread comes back for
// more. The grid grows with the array up to what the multiprocessors of the device can hold at a time, so beyond that
// size the numbers depend on how many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "ledger/lock.hpp"

namespace tcuda {

constexpr std::uint64_t philox_block = 256;   // threads
constexpr std::uint64_t philox_increment = 4; // how far a draw moves the offset, whatever its lanes

// One kernel over a part of an array; none if the part is empty.
struct PhiloxPass {
    std::uint64_t start, size; // in elements
    std::uint64_t blocks;
    std::uint64_t increment; // by how much the offset moves
};

// Visits the kernels that fill an array, in their order, while `visit` returns 0; returns what it returned last.
class PhiloxPasses {
public:
    PhiloxPasses(std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks)
        : itemsize_(itemsize), lanes_(lanes), most_blocks_(most_blocks) {}

    template <typename Visit> int each(std::uint64_t size, Visit visit) const {
        if (size == 0)
            return 0;
        // torch splits what an index of 32 bits cannot reach, when it has moved the offset once for the whole already.
        if (!fits(size))
            if (const int status = visit(PhiloxPass{0, 0, 0, pass(0, size).increment}))
                return status;
        return each_part(0, size, visit);
    }

private:
    bool fits(std::uint64_t size) const { return 1 + (size - 1) * itemsize_ <= INT32_MAX; }

    PhiloxPass pass(std::uint64_t start, std::uint64_t size) const {
        const std::uint64_t blocks = std::min((size + philox_block - 1) / philox_block, most_blocks_);
        const std::uint64_t draws = (size - 1) / (philox_block * blocks * lanes_) + 1;
        return {start, size, blocks, draws * philox_increment};
    }

    template <typename Visit> int each_part(std::uint64_t start, std::uint64_t size, Visit &visit) const {
        if (fits(size))
            return visit(pass(start, size));
        const std::uint64_t half = size / 2;
        const int status = each_part(start, half, visit);
        return status ? status : each_part(start + half, size - half, visit);
    }

    const std::uint64_t itemsize_, lanes_, most_blocks_;
};

// A seed, and an offset: how many numbers of 32 bits every subsequence has given.
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
    // Moves the offset, and returns the seed and the offset as they were: the caller's own.
    Words advance(std::uint64_t increment) {
        const Lock lock(mutex_);
        return {seed_, std::exchange(offset_, offset_ + increment)};
    }
    // Calls `use` with the seed and the offset, which it may change; the offset stays as it was if that returns a failure.
    template <typename Use> int draw(Use use) {
        const Lock lock(mutex_);
        std::uint64_t offset = offset_;
        const int status = use(seed_, offset);
        if (status == 0)
            offset_ = offset;
        return status;
    }

private:
    mutable std::mutex mutex_;
    std::uint64_t seed_, offset_;
};

} // namespace tcuda
