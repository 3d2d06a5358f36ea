// The options of TCUDA_ALLOC_CONF that the caching allocator goes by; tcuda/memory/_settings.py reads them.
#pragma once

#include <array>
#include <cstddef>
#include <limits>

namespace tcuda {

struct Settings {
    // Blocks of this size and more are never split, and serve only requests of about their size.
    std::size_t max_split_size = std::numeric_limits<std::size_t>::max();
    // How much larger than the request such a block may be.
    std::size_t max_non_split_rounding = std::size_t(20) << 20;
    // The share of the memory limit above which blocks that have not been used for long are released; 0 is never.
    double garbage_collection_threshold = 0;
    bool expandable_segments = true;
    // Into how many steps the range up to the next power of two is divided: for sizes up to 1 MiB, 2 MiB, ... 32 GiB
    // and more. 0 rounds to multiples of 512 bytes only.
    std::array<std::size_t, 16> roundup_power2_divisions{};
};

} // namespace tcuda
