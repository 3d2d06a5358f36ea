#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/ledger/checkpoint.hpp"
#include "memory/ledger/live_blocks.hpp"
#include "memory/ledger/stream_waits.hpp"
#include "memory/records/memory_observer.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// The holds of graphs and captures on live blocks. A block with holds keeps its contents after it is freed.
class GraphHolds {
public:
    // A hold of a graph that is about to be released.
    struct Hold {
        Address address;
        std::uint64_t release; // the request of the point at which the device has done the replays
    };

    GraphHolds(int device, const std::atomic<MemoryObserver *> &observer, LiveBlocks &live, StreamWaits &waits,
               const Checkpoint &checkpoint)
        : device_(device), observer_(observer), live_(live), waits_(waits), checkpoint_(checkpoint) {}
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

    // The holds on live blocks of this device. Takes the host memory that release() needs.
    std::list<Hold> own(const std::vector<Address> &held);
    // Ends the holds of a graph that the device is not running. May give the lock back.
    void release(Lock &lock, std::list<Hold> &own);
    // Ends the holds of a graph once the device has passed the point of the request. Such requests only grow.
    void release_later(std::list<Hold> &own, std::uint64_t request);
    // Ends the holds of the released graphs whose points the device has passed. May give the lock back.
    void end_passed(Lock &lock);

private:
    const int device_;
    const std::atomic<MemoryObserver *> &observer_;
    LiveBlocks &live_;
    StreamWaits &waits_;
    const Checkpoint &checkpoint_;
    std::list<Hold> released_; // of graphs that the device may still run, in the order of the requests
};

} // namespace tcuda
