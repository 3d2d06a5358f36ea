#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "driver/driver.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// The physical memory that is mapped in expandable segments.
class PhysicalMemory {
public:
    // Adds a heap to `emptied` when its segment loses its last mapping.
    PhysicalMemory(int device, Driver &driver, MaybeUnneededHeaps &emptied, Statistics &statistics)
        : device_(device), driver_(driver), emptied_(emptied), statistics_(statistics) {}
    PhysicalMemory(const PhysicalMemory &) = delete;
    PhysicalMemory &operator=(const PhysicalMemory &) = delete;

    // Maps new memory at an address of the segment, in pieces of up to `piece` bytes, all of it or none. Returns a
    // status.
    int map(Segment &segment, Address address, std::size_t size, std::size_t piece);

    // Unmaps all pieces that begin in a range. A piece that the driver fails to unmap stays among the mappings of the
    // segment, and the first such failure is returned.
    int unmap(Segment &segment, Address from, Address to);
    int unmap(Segment &segment, Segment::Mappings::iterator mapping);

    // Takes the memory of a mapping away and keeps the addresses, in two steps: after the first one, map_again() brings
    // the same memory back. Memory that the driver fails to destroy in the second step is mapped again by wake(). Both
    // entries do nothing to a mapping that is asleep, and wake() does nothing to any other. Each returns a status.
    int unmap_for_sleep(Address address, Segment::Mapping &mapping);
    int map_again(Address address, Segment::Mapping &mapping);
    void destroy_for_sleep(Segment::Mapping &mapping);
    // Maps memory with other contents at the addresses.
    int wake(Address address, Segment::Mapping &mapping);

    // Whether the driver may have failed to unmap memory since the last call.
    bool forget_failures() { return std::exchange(failed_to_unmap_, false); }

    // The number of a new mapping; see Sharing::youngest.
    static std::uint64_t next_number();

    // Offers the driver the unmapped memory again that it failed to destroy.
    void retry();

private:
    int map_piece(Segment &segment, Address address, std::size_t size);
    void destroy(Segment::Mappings::node_type mapping);

    const int device_;
    Driver &driver_;
    MaybeUnneededHeaps &emptied_;
    Statistics &statistics_;
    // The pieces that the driver failed to destroy. The nodes come from the mappings, so no host memory is needed.
    std::multimap<Address, Segment::Mapping> undestroyed_;
    bool failed_to_unmap_ = false;
};

} // namespace tcuda
