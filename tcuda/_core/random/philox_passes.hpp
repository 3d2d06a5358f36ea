// The kernels that fill an array with random numbers of a Philox4x32-10 generator, split as torch splits them.
//
// Every thread of a kernel draws from a subsequence of its own, which the index of the thread in the grid chooses. A
// draw gives four numbers of 32 bits, or two of 64 bits: the lanes. The lanes of one draw lie a whole grid apart in the
// array. After the lanes of one draw, a thread draws again for the next elements. The grid grows with the array up to
// the number of blocks that the multiprocessors of the device can hold at a time. So the numbers in a larger array
// depend on that limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "driver/status.hpp"

namespace tcuda {

constexpr std::uint64_t philox_block = 256; // threads of a block
constexpr std::uint64_t philox_increment = 4; // how far a draw moves the offset, for every number of lanes

// One kernel over a part of an array. No kernel is launched for an empty part, but the offset moves.
struct PhiloxPass {
    std::uint64_t start, size; // in elements
    std::uint64_t blocks;
    std::uint64_t increment; // how far the kernel moves the offset
};

class PhiloxPasses {
public:
    PhiloxPasses(std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks)
        : itemsize_(itemsize), lanes_(lanes), most_blocks_(most_blocks) {}

    // Visits the kernels that fill an array of `size` elements, in their order, until `visit` returns a failure.
    // Returns the last status.
    template <typename Visit> int each(std::uint64_t size, Visit visit) const {
        if (size == 0)
            return success;
        // torch splits an array that is too large for indices of 32 bits. Before that, torch has moved the offset once
        // for the whole array.
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
        return status != success ? status : each_part(start + half, size - half, visit);
    }

    const std::uint64_t itemsize_, lanes_, most_blocks_;
};

} // namespace tcuda
