#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/driver.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda::races {

// Memory that was handed out. An allocation stays known after its free, while accesses of it are known.
struct Allocation {
    Address address = 0;
    std::size_t size = 0;
    int device = 0;
    Stream stream = 0;
    StackId stack = 0;
    StackId freed_stack = 0;
    bool freed = false;
    bool listed = false; // whether Allocations finds it by its address
    std::size_t users = 0;

    bool contains(Address place) const { return place - address < size; }
};

} // namespace tcuda::races
