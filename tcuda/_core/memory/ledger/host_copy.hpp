#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "driver/driver.hpp"
#include "memory/ledger/shutdown.hpp"

namespace tcuda {

// A copy of ranges of device memory, in page-locked memory of the host that belongs to the copy alone. The host memory
// goes back to the system when the object ends, unless the process ends too. Every function, and the destructor, is
// called without the lock of a ledger and without Python's lock.
class HostCopy {
public:
    struct Range {
        Address address;
        std::size_t size;
    };

    HostCopy(int device, Driver &driver, const Shutdown &shutdown)
        : device_(device), driver_(driver), shutdown_(shutdown) {}
    ~HostCopy();
    HostCopy(const HostCopy &) = delete;
    HostCopy &operator=(const HostCopy &) = delete;

    // Copies ranges, which are in ascending order and do not overlap. Returns a status. After a failure to take memory
    // of the host, `*lacks_host` is true.
    int take(const std::vector<Range> &ranges, bool *lacks_host);

    // Copies those parts of the ranges back that lie in `wanted`, whose ranges are in ascending order and do not
    // overlap. Returns a status.
    int give(const std::vector<Range> &wanted);

private:
    // Some pages of the host, and how many bytes of them are in use.
    struct Chunk {
        Address address;
        std::size_t size, used;
    };
    struct Part {
        Range range;
        Address host;
    };

    int take_parts(const std::vector<Range> &ranges, std::size_t total, bool *lacks_host);
    int add_chunk(Address pages, std::size_t size);

    const int device_;
    Driver &driver_;
    const Shutdown &shutdown_;
    std::vector<Chunk> chunks_;
    std::vector<Part> parts_; // in ascending order
};

} // namespace tcuda
