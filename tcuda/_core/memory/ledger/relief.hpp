#pragma once

#include <cstddef>

namespace tcuda {

// Lets the program free memory when a device has no room, before an allocation fails.
class Relief {
public:
    Relief() = default;
    virtual ~Relief() = default;
    Relief(const Relief &) = delete;
    Relief &operator=(const Relief &) = delete;

    // Called without a lock of the ledger. Returns whether to try the allocation again, because memory may have become
    // free. An exception ends the allocation.
    virtual bool relieve(int device, std::size_t size) = 0;
};

} // namespace tcuda
