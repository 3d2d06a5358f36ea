// The exceptions of the ledger.
#pragma once

#include <cstddef>
#include <exception>

#include "driver/driver.hpp"
#include "memory/allocator/pool.hpp"

namespace tcuda {

// The device has too little memory. The fields are the facts that a message tells.
struct OutOfMemory : std::exception {
    int device = 0;
    std::size_t requested = 0, total = 0, free = 0, limit = 0, allocated = 0, reserved = 0, largest_free = 0;
    Stream stream = 0;
    bool limited = false;  // set_per_process_memory_fraction() has set a limit
    bool rejected = false; // before the driver was asked, by Settings::rejects_beyond_limit
    const char *what() const noexcept override { return "CUDA out of memory"; }
};

// A call of the driver failed.
struct DriverError : std::exception {
    DriverError(int status, const char *call) : status(status), call(call) {}
    int status;
    const char *call;
    const char *what() const noexcept override { return call; }
};

// The pool of an allocation is asleep, or a thread puts the pool to sleep or wakes the pool.
struct PoolAsleep : std::exception {
    PoolAsleep(int device, PoolId pool) : device(device), pool(pool) {}
    int device;
    PoolId pool;
    const char *what() const noexcept override { return "the pool is asleep"; }
};

// A library returned memory that is still in use.
struct DuplicatePointer : std::exception {
    explicit DuplicatePointer(Address address) : address(address) {}
    Address address;
    const char *what() const noexcept override { return "the allocator returned memory that is still in use"; }
};

} // namespace tcuda
