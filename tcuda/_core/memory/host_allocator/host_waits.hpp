// Freed page-locked memory that work of a device may still use.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "driver/capture_gate.hpp"
#include "driver/driver.hpp"
#include "memory/host_allocator/host_block.hpp"
#include "memory/host_allocator/host_heap.hpp"
#include "memory/records/history.hpp"
#include "threads/lock.hpp"

namespace tcuda {

// A program queues a copy without a word to the allocator. So each freed block is in doubt until the driver has
// answered. Emulated devices know the uses of an address. CUDA does not: an event behind all work of each device
// answers for all blocks that were freed before.
//
// Every function has the lock of the allocator, and gives the lock back while it calls the driver.
class HostWaits {
public:
    // `may_ask` is called without the lock, and returns whether no stream of a device captures: a question would
    // invalidate the capture.
    HostWaits(Driver &driver, int devices, HostHeap &heap, History &history, CaptureGate &gate,
              std::function<bool(int device)> may_ask)
        : driver_(driver), devices_(devices), heap_(heap), history_(history), gate_(gate),
          may_ask_(std::move(may_ask)) {}
    HostWaits(const HostWaits &) = delete;
    HostWaits &operator=(const HostWaits &) = delete;

    void free(HostBlock *block) noexcept {
        block->state = HostBlock::State::doubtful;
        block->released = false;
        doubtful_.add(block);
        ++doubts_;
    }
    // Whether a block is in doubt, or waits for events.
    bool any() const { return !doubtful_.empty() || !used_.empty() || !batches_.empty(); }
    // How many blocks were freed since the last question.
    std::size_t doubts() const { return doubts_; }

    // Gives the heap the blocks that no work uses any more, and returns their bytes. Waits for the work if `wait`. A
    // driver that is asked for each block is asked about at least `again` blocks that work used before.
    std::size_t settle(Lock &lock, bool wait, std::size_t again = 256);
    // Whether one question answers for all blocks that were freed before.
    bool asks_for_all() const { return !driver_.knows_host_uses(); }

    // During a capture, blocks that captured work may use stay in doubt: the graph is not known yet.
    bool is_in_capture() const { return gate_.is_in_capture(); }

    // Destroys the events: without the lock, and once only.
    void destroy_events() noexcept;

private:
    using Events = std::vector<Event>; // by device; 0 if the device has nothing to do
    struct Batch {
        HostBlockList blocks;
        Events events;
        bool busy = true; // a thread uses the events
    };

    std::size_t ask_for_each(Lock &lock, bool all, std::size_t again);
    bool is_unused(Lock &lock, HostBlock *block);
    void record_batch(Lock &lock);
    bool wait_for_devices(Lock &lock);
    bool may_ask_all() const;
    bool record(Events &events);
    bool is_done(const Events &events, bool wait);
    std::size_t settled(HostBlockList &blocks) noexcept;

    Driver &driver_;
    const int devices_;
    HostHeap &heap_;
    History &history_;
    CaptureGate &gate_;
    const std::function<bool(int)> may_ask_;
    HostBlockList doubtful_;
    std::size_t doubts_ = 0; // the length of doubtful_
    HostBlockList used_; // in doubt; the driver has said that work uses them. The first one was asked about first
    std::list<Batch> batches_;
    std::list<Batch> spare_; // without blocks: their events can be recorded again
};

} // namespace tcuda
