#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace tcuda::races {

// A place for an address in a table of 1 << `bits` places. Addresses are often multiples of large powers of two, so all
// bits of the address take part.
template <unsigned bits> std::size_t place_of(Address address) {
    return static_cast<std::size_t>(address * 0x9E3779B97F4A7C15ull >> (64 - bits));
}

} // namespace tcuda::races
