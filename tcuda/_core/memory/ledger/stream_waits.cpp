#include "memory/ledger/stream_waits.hpp"

#include <algorithm>
#include <iterator>

#include "memory/allocator/heap.hpp"

namespace tcuda {

void StreamWaits::record_use(Block *block, Stream stream) {
    if (stream == block->stream && !stream_is_gone(block))
        return;
    if (block->uses == nullptr)
        block->uses = std::make_unique<std::list<Wait>>();
    const auto same = [&](const Wait &use) { return use.stream == stream && !use.is_gone(); };
    if (std::none_of(block->uses->begin(), block->uses->end(), same))
        block->uses->emplace_back(stream, block, std::make_shared<Work>(), StreamTie(lives_, lives_.of(stream)));
}

// Makes a block wait for the work that every stream which uses it has by now. The waits were made when the uses were
// recorded, so that a free needs no host memory.
void StreamWaits::hold_back(Lock &lock, Block *block) {
    block->state = Block::State::awaiting_free;
    block->waits = block->uses->size();
    for (Wait &use : *block->uses) { // no other thread changes the uses of a block that awaits its free
        const std::shared_ptr<Work> work = use.awaited();
        if (!work->gone)
            progress_.record(lock, *work, use.stream);
        if (work->event != 0)
            use.tie.end();
    }
    add(*block->uses);
    block->uses.reset();
}

void StreamWaits::settle(Lock &lock, bool wait) {
    while (!arrivals_.empty()) {
        std::list<Wait> &queue = queues_[arrivals_.front().stream];
        queue.splice(queue.end(), arrivals_, arrivals_.begin());
    }
    for (auto queue = queues_.begin(); queue != queues_.end();) {
        const Stream stream = queue->first;
        advance(lock, stream, wait);
        queue = queues_.upper_bound(stream); // other threads may have changed the map
    }
    destroy_spent(lock);
}

// Takes the waits whose work is done from the queue of a stream. Several threads may be here at a time. A wait whose
// work is not done stays in the queue, so that each thread sees every wait, and can wait for its work.
void StreamWaits::advance(Lock &lock, Stream stream, bool wait) {
    for (;;) {
        const auto queue = queues_.find(stream);
        if (queue == queues_.end())
            return;
        std::list<Wait> &waits = queue->second;
        if (waits.empty()) {
            queues_.erase(queue);
            return;
        }
        const std::shared_ptr<Work> work = waits.front().awaited();
        if (!work->done) {
            if (!progress_.is_done(lock, *work, stream, wait))
                return;
            continue; // the lock was given back, and the queue may have changed
        }
        Block *block = waits.front().block;
        waits.front().tie.end();
        spent_.splice(spent_.end(), waits, waits.begin());
        if (block != nullptr && --block->waits == 0)
            returns_.complete(lock, block);
    }
}

// Destroys the events that no thread needs any more.
void StreamWaits::destroy_spent(Lock &lock) {
    std::list<Wait> spent;
    for (auto wait = spent_.begin(); wait != spent_.end();) {
        const auto next = std::next(wait);
        if (wait->work->users == 0)
            spent.splice(spent.end(), spent_, wait);
        wait = next;
    }
    for (auto wait = spent.begin(); wait != spent.end();) {
        const std::shared_ptr<Work> work = wait->work;
        wait = progress_.destroy_event(lock, *work) ? spent.erase(wait) : std::next(wait);
    }
    spent_.splice(spent_.end(), spent); // the events that the driver failed to destroy, for another attempt
}

void StreamWaits::destroy_events() {
    for (const Wait &wait : arrivals_)
        progress_.destroy_last_event(*wait.work);
    for (const auto &[stream, queue] : queues_)
        for (const Wait &wait : queue)
            progress_.destroy_last_event(*wait.work);
    for (const Wait &wait : spent_)
        progress_.destroy_last_event(*wait.work);
}

} // namespace tcuda
