// The options of TCUDA_ALLOC_CONF for the caching allocator.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace tcuda {

struct Settings {
    // Blocks of this size and more are never split, and serve only requests of a similar size.
    std::size_t max_split_size = std::numeric_limits<std::size_t>::max();
    // How much larger than the request such a block may be.
    std::size_t max_non_split_rounding = std::size_t(20) << 20;
    // The share of the memory limit above which memory that was unused for long is given back. 0 means never.
    double garbage_collection_threshold = 0;
    bool expandable_segments = true;
    // Whether free memory goes back to the driver whenever an allocation needs new memory. Otherwise free pieces get
    // second addresses.
    bool trim_always = false;
    // Whether an allocation that would exceed the memory limit fails at once, before free memory is given back.
    bool rejects_beyond_limit = false;
    // The number of steps between two powers of two to which sizes are rounded up: the first number for sizes below 2
    // MiB, the next ones for sizes from 2 MiB, from 4 MiB, and so on, the last one for sizes from 32 GiB. 0 rounds up
    // to multiples of 512 bytes only.
    std::array<std::size_t, 16> roundup_power2_divisions{};
};

} // namespace tcuda
