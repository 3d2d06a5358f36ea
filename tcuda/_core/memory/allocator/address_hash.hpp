// The hash of addresses, for tables and trees.
#pragma once

#include <cstdint>

namespace tcuda {

// Programs allocate many blocks of one size side by side, so addresses are often evenly spaced. The product with one
// constant is then evenly spaced, too, and for some distances nearly all products lie in a few places: lookups would
// take time in proportion to the number of blocks. The second product is random whatever the distance.
inline std::uint64_t hash_of(std::uint64_t address) {
    const std::uint64_t product = address * 0x9E3779B97F4A7C15ull;
    return (product ^ product >> 29) * 0xBF58476D1CE4E5B9ull;
}

} // namespace tcuda
