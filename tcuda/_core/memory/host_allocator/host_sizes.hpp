// The sizes of blocks of page-locked host memory.
#pragma once

#include <cstddef>

namespace tcuda {

constexpr std::size_t host_unit = 64;                           // the alignment of every block: a line of the cache
constexpr std::size_t host_page = 4096;                         // the driver locks whole pages
constexpr std::size_t exact_host_size = std::size_t(2) << 20;   // a block of this size or more has whole pages only
constexpr std::size_t small_host_limit = std::size_t(1) << 20;  // blocks up to this size share segments
constexpr std::size_t small_host_segment = std::size_t(2) << 20;
constexpr std::size_t small_host_reserve = std::size_t(30) << 20; // the segment that lets small blocks ask less often
constexpr std::size_t largest_host_request = std::size_t(1) << 62;

inline std::size_t rounded_to(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

inline std::size_t power_of_two_from(std::size_t size) { return std::size_t(1) << (64 - __builtin_clzll(size - 1)); }

inline bool is_small_host_size(std::size_t block_size) { return block_size <= small_host_limit; }

// The size of the block for a request. There are eight sizes for each power of two, so a block exceeds its request by
// less than an eighth, or by less than host_unit.
inline std::size_t host_block_size(std::size_t request) {
    if (request >= exact_host_size)
        return rounded_to(request, host_page);
    if (request <= 8 * host_unit)
        return rounded_to(request, host_unit);
    const unsigned power = 63u - static_cast<unsigned>(__builtin_clzll(request - 1));
    return rounded_to(request, std::size_t(1) << (power - 3));
}

// The sizes up to small_host_limit have the numbers 1 to host_sizes - 1. `block_size` is such a size.
constexpr std::size_t host_sizes = 97;
inline std::size_t host_size_number(std::size_t block_size) {
    if (block_size <= 8 * host_unit)
        return block_size / host_unit;
    const unsigned power = 63u - static_cast<unsigned>(__builtin_clzll(block_size - 1));
    return 8 * (power - 9) + (block_size >> (power - 3));
}

// The largest free block that may serve for a large block of this size.
inline std::size_t most_host_block_size(std::size_t block_size) { return block_size + block_size / 8; }

} // namespace tcuda
