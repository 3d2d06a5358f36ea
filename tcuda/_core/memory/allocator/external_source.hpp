// Sources of memory other than the caching allocator: pools of CuPy, libraries of users, the driver itself.
#pragma once

#include <cstddef>

#include "driver/driver.hpp"

namespace tcuda {

// How the ledger learns of the memory that a source has reserved.
enum class Reserve {
    each,     // every allocation is a segment of its own
    reported, // the source takes its segments from DeviceLedger::allocate_segment()
    unknown,  // the source does not tell: its reserved memory counts as 0
};

// Lock rule: no function is called under the lock of a ledger, so each may call Python, or come back to the ledger.
// Where every allocation is a segment, allocate() and free() may wait for the device, and are called without Python's
// lock.
class ExternalSource {
public:
    ExternalSource(Reserve reserve, std::size_t unit) : reserve(reserve), unit(unit) {}
    virtual ~ExternalSource() = default;

    // Memory of `size` bytes for use on `stream`; 0 if there is none. `token` is handed back to free().
    virtual Address allocate(std::size_t size, int device, Stream stream, void **token) = 0;
    virtual void free(Address address, std::size_t size, int device, Stream stream, void *token) noexcept = 0;

    // Whether free() may give memory to the host's allocator at once, without a call of the driver.
    virtual bool is_library() const { return false; }

    // Gives the memory back that the source keeps for later allocations.
    virtual void empty_cache(int) {}

    const Reserve reserve;
    const std::size_t unit; // the ledger rounds sizes up to multiples of it
};

} // namespace tcuda
