// The sizes by which the caching allocator divides device memory.
#pragma once

#include <cstddef>

namespace tcuda {

// The largest request. Beyond it sums of sizes could overflow, and no device has as much memory.
constexpr std::size_t largest_request = std::size_t(1) << 62;

// Small requests, up to this size, have heaps of their own.
constexpr std::size_t small_limit = std::size_t(1) << 20;
inline bool is_large_request(std::size_t size) { return size > small_limit; }

constexpr std::size_t small_segment = std::size_t(2) << 20;
constexpr std::size_t large_segment = std::size_t(20) << 20;
constexpr std::size_t own_segment = std::size_t(10) << 20; // a request of this size and more gets a segment for itself

constexpr std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

// The size of a new segment for a request.
inline std::size_t segment_size(std::size_t size) {
    if (!is_large_request(size))
        return small_segment;
    return size < own_segment ? large_segment : round_up(size, small_segment);
}

inline unsigned log2_floor(std::size_t size) { return 63u - static_cast<unsigned>(__builtin_clzll(size)); }

} // namespace tcuda
