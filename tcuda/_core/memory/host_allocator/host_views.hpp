// The segments and blocks of page-locked host memory, as a snapshot shows them.
#pragma once

#include <cstddef>
#include <vector>

#include "driver/driver.hpp"
#include "memory/host_allocator/host_block.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

struct HostBlockView {
    Address address;
    std::size_t size, requested;
    HostBlock::State state;
    StackId stack;
};

struct HostSegmentView {
    Address address;
    std::size_t size;
    bool small;
    StackId stack;
    std::vector<HostBlockView> blocks;
};

} // namespace tcuda
