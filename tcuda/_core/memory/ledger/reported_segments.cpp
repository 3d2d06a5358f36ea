#include "memory/ledger/reported_segments.hpp"

#include <cstdint>

#include "memory/allocator/sizes.hpp"
#include "memory/records/noted_call.hpp"

namespace tcuda {

Address ReportedSegments::allocate(Lock &lock, std::size_t size) {
    lock.leave_interpreter();
    const bool allowed = limit_.allows(lock, size, statistics_.reserved());
    Address address = 0;
    if (size == 0 || !allowed || driver_.allocate(device_, size, &address) != success)
        return 0;
    try {
        segments_.emplace(address, Segment{size, NotedCall::stack()});
    } catch (...) {
        driver_.free(device_, address);
        throw;
    }
    const bool large = is_large_request(size);
    statistics_.reserved_bytes.add(large, static_cast<std::int64_t>(size));
    statistics_.segment.add(large, 1);
    ++statistics_.num_device_alloc;
    history_.record_segment(Action::segment_alloc, address, size, 0, 0);
    return address;
}

void ReportedSegments::free(Address address) noexcept {
    const auto segment = segments_.find(address);
    if (segment == segments_.end())
        return;
    if (driver_.free(device_, address) != success) {
        segment->second.unwanted = true;
        return;
    }
    const auto [size, stack, unwanted] = segment->second;
    segments_.erase(segment);
    const bool large = is_large_request(size);
    statistics_.reserved_bytes.add(large, -static_cast<std::int64_t>(size));
    statistics_.segment.add(large, -1);
    ++statistics_.num_device_free;
    history_.record_segment(Action::segment_free, address, size, 0, stack);
}

void ReportedSegments::retry() noexcept {
    for (auto segment = segments_.begin(); segment != segments_.end();) {
        const auto [address, facts] = *segment;
        ++segment; // free() may erase the segment
        if (facts.unwanted)
            free(address);
    }
}

} // namespace tcuda
