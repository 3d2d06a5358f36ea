#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace tcuda {

// Gives torch its memory. Threads without Python's lock may call the functions.
class Shared {
public:
    virtual ~Shared() = default;
    // Throws std::runtime_error if there is no memory.
    virtual void *allocate(std::size_t size, int device, Stream stream) = 0;
    virtual void free(Address address, int device) = 0;
    virtual void record_stream(Address address, Stream stream) = 0;
};

// Lets the functions that torch calls use `with_torch`, which must never be destroyed.
void share(Shared *with_torch);

} // namespace tcuda
