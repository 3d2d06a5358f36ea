// The memory around an allocation, in the form in which other processes can open it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "driver/driver.hpp"

namespace tcuda {

using Range = std::pair<Address, std::size_t>; // the address and the size

struct Sharing {
    Range block;
    std::vector<Stream> streams; // the keys of the streams that use the block
    // The pieces of physical memory that contain the block, in order and without gaps; empty for other memory.
    std::vector<Range> pieces;
    // The number of the piece that was mapped last. A process counts its mappings from 1. So pieces with the same
    // addresses and the same youngest piece are the same physical memory. 0 without pieces.
    std::uint64_t youngest = 0;
    // The segment of the driver that contains the block; of size 0 if the driver knows none, and if there are pieces.
    Range segment{0, 0};
};

} // namespace tcuda
