#include "memory/allocator/physical_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

namespace tcuda {

int PhysicalMemory::map(Segment &segment, Address address, std::size_t size, std::size_t piece) {
    const Address end = address + size;
    if (const int status = unmap(segment, address, end)) // pieces that an earlier failure has left here
        return status;
    for (Address at = address; at < end;) {
        const std::size_t size_of_piece = std::min(piece, end - at);
        if (const int status = map_piece(segment, at, size_of_piece)) {
            unmap(segment, address, at);
            return status;
        }
        at += size_of_piece;
    }
    return success;
}

namespace {

// The number of the mapping that was made last in this process.
std::atomic<std::uint64_t> mappings_made{0};

} // namespace

std::uint64_t PhysicalMemory::next_number() { return ++mappings_made; }

int PhysicalMemory::map_piece(Segment &segment, Address address, std::size_t size) {
    Segment::Mappings::iterator mapping;
    try { // takes the host memory before the driver is called
        mapping = segment.mappings.emplace(address, Segment::Mapping{size, 0, next_number()}).first;
    } catch (const std::bad_alloc &) {
        return out_of_memory;
    }
    int status = driver_.create(device_, size, &mapping->second.physical);
    if (status != success) {
        segment.mappings.erase(mapping);
        return status;
    }
    status = driver_.map(device_, address, size, mapping->second.physical);
    if (status != success)
        destroy(segment.mappings.extract(mapping));
    else
        ++statistics_.num_device_alloc;
    return status;
}

int PhysicalMemory::unmap(Segment &segment, Address from, Address to) {
    int status = success;
    for (auto mapping = segment.mappings.lower_bound(from); mapping != segment.mappings.end() && mapping->first < to;) {
        const int failure = unmap(segment, mapping++);
        status = status == success ? failure : status;
    }
    return status;
}

int PhysicalMemory::unmap(Segment &segment, Segment::Mappings::iterator mapping) {
    const bool asleep = mapping->second.asleep;
    if (const int status = asleep ? success : driver_.unmap(device_, mapping->first, mapping->second.size)) {
        failed_to_unmap_ = true;
        return status;
    }
    if (mapping->second.physical != 0)
        destroy(segment.mappings.extract(mapping));
    else
        segment.mappings.erase(mapping);
    statistics_.num_device_free += !asleep;
    if (segment.mappings.empty())
        emptied_.add(*segment.heap);
    return success;
}

// Sleeping

int PhysicalMemory::unmap_for_sleep(Address address, Segment::Mapping &mapping) {
    const int status = mapping.asleep ? success : driver_.unmap(device_, address, mapping.size);
    if (status == success && !std::exchange(mapping.asleep, true))
        ++statistics_.num_device_free;
    return status;
}

int PhysicalMemory::map_again(Address address, Segment::Mapping &mapping) {
    const int status = driver_.map(device_, address, mapping.size, mapping.physical);
    if (status == success) {
        mapping.asleep = false;
        ++statistics_.num_device_alloc;
    }
    return status;
}

void PhysicalMemory::destroy_for_sleep(Segment::Mapping &mapping) {
    if (mapping.asleep && mapping.physical != 0 && driver_.destroy(device_, mapping.physical) == success)
        mapping.physical = 0;
}

int PhysicalMemory::wake(Address address, Segment::Mapping &mapping) {
    if (!mapping.asleep)
        return success;
    if (mapping.physical == 0)
        if (const int status = driver_.create(device_, mapping.size, &mapping.physical)) {
            mapping.physical = 0;
            return status;
        }
    mapping.number = next_number();
    const int status = map_again(address, mapping);
    if (status != success)
        destroy_for_sleep(mapping);
    return status;
}

// Failures

void PhysicalMemory::destroy(Segment::Mappings::node_type mapping) {
    if (driver_.destroy(device_, mapping.mapped().physical) != success)
        undestroyed_.insert(std::move(mapping));
}

void PhysicalMemory::retry() {
    for (auto left = undestroyed_.begin(); left != undestroyed_.end();)
        left = driver_.destroy(device_, left->second.physical) == success ? undestroyed_.erase(left) : std::next(left);
}

} // namespace tcuda
