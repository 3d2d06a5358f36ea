#pragma once

#include <vector>

#include "memory/allocator/caching_allocator.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/reported_segments.hpp"
#include "memory/ledger/segment_view.hpp"

namespace tcuda {

// The segments of a device by address: of the pool of that number, or, if `only` is null, of all pools. Memory of
// external sources counts as memory of the common pool. The recent blocks are merged before.
std::vector<SegmentView> view_segments(const CachingAllocator &native, const LiveBlocks &live,
                                       const ReportedSegments &reported, const PoolId *only);

// The bytes of the blocks that are allocated or await their free.
std::size_t active_bytes(const std::vector<SegmentView> &segments);

} // namespace tcuda
