#pragma once

#include <cstddef>

namespace tcuda {

// How many more bytes may be taken from the driver.
struct Room {
    std::size_t allowed;  // as the limit says
    std::size_t expected; // as the limit says, and the device when the device was asked last
};

} // namespace tcuda
