#pragma once

#include <memory>

#include "allocator/caching_allocator.hpp"
#include "allocator/work.hpp"
#include "driver/driver.hpp"
#include "ledger/live_blocks.hpp"
#include "ledger/pools.hpp"
#include "ledger/stream_waits.hpp"

namespace tcuda {

// The places where the ledger remembers a stream by its handle. When the stream is destroyed, its last work replaces
// the handle in all of them: the driver may give the handle to another stream.
class StreamTraces {
public:
    StreamTraces(StreamWaits &waits, LiveBlocks &live, Pools &pools, CachingAllocator &native)
        : waits_(waits), live_(live), pools_(pools), native_(native) {}
    StreamTraces(const StreamTraces &) = delete;
    StreamTraces &operator=(const StreamTraces &) = delete;

    bool has_any(Stream stream);

    // Replaces the handle by `end`, the last work of the stream.
    void replace(Stream stream, const std::shared_ptr<Work> &end);

private:
    template <typename Visit> void each_wait(Stream stream, Visit visit);
    template <typename Visit> void each_block(Stream stream, Visit visit);
    template <typename Visit> void each_heap(Stream stream, Visit visit);

    StreamWaits &waits_;
    LiveBlocks &live_;
    Pools &pools_;
    CachingAllocator &native_;
};

} // namespace tcuda
