#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace tcuda {

// What torch gets its memory from. It may be called by threads that do not hold Python's lock.
class Shared {
public:
    virtual ~Shared() = default;
    virtual void *allocate(std::size_t size, int device, Stream stream) = 0; // throws std::runtime_error
    virtual void free(Address address, int device) = 0;
    virtual void record_stream(Address address, Stream stream) = 0;
};

// Lets the exported functions use `with_torch`, which lives for ever.
void share(Shared *with_torch);

} // namespace tcuda
