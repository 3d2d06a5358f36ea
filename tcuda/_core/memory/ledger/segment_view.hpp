// The segments and blocks of a device, as a snapshot shows them.
#pragma once

#include <cstddef>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

struct BlockView {
    Address address;
    std::size_t size, requested;
    Block::State state;
    StackId stack;
    const Scope *scope = nullptr;
};

struct SegmentView {
    Address address;
    std::size_t size;
    Stream stream;
    bool is_large, expandable;
    PoolId pool;
    StackId stack;
    std::vector<BlockView> blocks;
    bool asleep = false;
};

} // namespace tcuda
