#pragma once

#include <cstddef>
#include <map>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

struct Heap;
struct Window;

// Memory that the driver, or the library of a pool, has given; or, if expandable, a range of addresses that gets
// physical memory piece by piece.
struct Segment {
    // A piece of physical memory that is mapped at an address.
    struct Mapping {
        std::size_t size;
        Physical physical;
        std::uint64_t number = 0; // see Sharing::youngest
        bool asleep = false;      // the addresses have no memory until the pool wakes; see PhysicalMemory::sleep()
    };
    using Mappings = std::map<Address, Mapping>;

    Heap *heap = nullptr;
    Address address = 0;
    std::size_t size = 0;
    bool expandable = false;
    bool oversize = false; // counted as oversize, by the settings at that time
    StackId stack = 0;
    void *token = nullptr; // the library's own name for the memory
    Block *first = nullptr;
    Window *window = nullptr; // whose segment this is
    Mappings mappings;
};

} // namespace tcuda
