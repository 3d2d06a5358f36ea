#pragma once

#include <cstddef>
#include <map>

#include "driver/driver.hpp"
#include "memory/ledger/memory_limit.hpp"
#include "memory/records/history.hpp"
#include "memory/records/statistics.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The segments that external sources take from the ledger, as the pools of CuPy do.
class ReportedSegments {
public:
    ReportedSegments(int device, Driver &driver, MemoryLimit &limit, Statistics &statistics, History &history)
        : device_(device), driver_(driver), limit_(limit), statistics_(statistics), history_(history) {}
    ReportedSegments(const ReportedSegments &) = delete;
    ReportedSegments &operator=(const ReportedSegments &) = delete;

    // Takes a segment from the driver. Returns 0 if the driver has no such memory, or the limit forbids it.
    Address allocate(Lock &lock, std::size_t size);

    // Gives a segment back to the driver. A segment that the driver fails to take back stays known until retry().
    void free(Address address) noexcept;

    // Offers the driver the segments again that it failed to take back.
    void retry() noexcept;

    // Calls `visit` with the address, the size and the stack of each segment.
    template <typename Visit> void each(Visit visit) const {
        for (const auto &[address, segment] : segments_)
            visit(address, segment.size, segment.stack);
    }

private:
    struct Segment {
        std::size_t size;
        StackId stack;
        bool unwanted = false; // the driver failed to take the segment back
    };

    const int device_;
    Driver &driver_;
    MemoryLimit &limit_;
    Statistics &statistics_;
    History &history_;
    std::map<Address, Segment> segments_;
};

} // namespace tcuda
