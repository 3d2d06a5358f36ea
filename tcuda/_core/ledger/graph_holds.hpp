#pragma once

#include <cstdint>
#include <vector>

#include "allocator/block.hpp"
#include "driver/driver.hpp"
#include "ledger/live_blocks.hpp"
#include "ledger/stream_progress.hpp"
#include "ledger/stream_waits.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The holds of graphs and captures on live blocks. A block with holds keeps its contents after it is freed.
class GraphHolds {
public:
    GraphHolds(LiveBlocks &live, StreamProgress &progress, StreamWaits &waits)
        : live_(live), progress_(progress), waits_(waits) {}
    GraphHolds(const GraphHolds &) = delete;
    GraphHolds &operator=(const GraphHolds &) = delete;

    // Frees a block as soon as nothing holds it, which may be now. May give the lock back.
    void free(Lock &lock, Block *block) {
        if (block->holds != 0)
            block->state = Block::State::awaiting_free;
        else
            waits_.free(lock, block);
    }

    // Holds the blocks that have one of the addresses, except the blocks that were allocated in the capture. Returns
    // the addresses of the blocks.
    std::vector<Address> hold(const std::vector<Address> &addresses, CaptureId capture);

    // Ends a hold on a block. May give the lock back.
    void unhold(Lock &lock, Block *block);
    // Ends a hold on each of the blocks that are linked by `right`.
    void unhold_all(Lock &lock, Block *first);

    // The addresses that live blocks of this device have. Makes room, so that the next release() cannot throw.
    std::vector<Address> own(const std::vector<Address> &held);
    // Ends the holds of a graph. If the device may be running the graph, the holds end when the device is done.
    void release(Lock &lock, const std::vector<Address> &own, bool may_run);
    // Waits for the device, and ends the holds of released graphs. A capture in progress forbids the wait, and the
    // holds then stay until a later call.
    void end_released(Lock &lock);

private:
    // A hold of a graph that is released, while the device may still run the graph.
    struct Released {
        Address address;
        std::uint64_t release; // the number of the release
    };

    LiveBlocks &live_;
    StreamProgress &progress_;
    StreamWaits &waits_;
    std::vector<Released> released_;
    std::uint64_t releases_ = 0;
};

} // namespace tcuda
