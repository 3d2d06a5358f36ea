// What the ledger asks of streams: which of them still use memory, and how far they have come.
#include <algorithm>

#include "ledger/device_ledger.hpp"

namespace tcuda {
namespace {

// How many pins on streams this thread has, on whichever device.
thread_local int pins_of_this_thread = 0;

} // namespace

bool DeviceLedger::record_stream(Address address, Stream stream) {
    const Lock lock(mutex_);
    Block *block = live_.find(address);
    if (block == nullptr || block->state != Block::State::allocated)
        return false;
    if (stream == block->stream && !block->stream_is_gone)
        return true;
    if (block->uses == nullptr)
        block->uses = std::make_unique<std::list<Wait>>();
    const auto same = [&](const Wait &use) { return use.stream == stream && !use.work->gone; };
    if (std::none_of(block->uses->begin(), block->uses->end(), same))
        block->uses->push_back({stream, block, std::make_shared<Work>()});
    return true;
}

// Lets a block wait for every stream that uses it, for the work that is there now. What it waits in was made when the
// use was recorded: a free needs no memory.
void DeviceLedger::hold_back(Lock &lock, Block *block) {
    block->state = Block::State::awaiting_free;
    block->waits = block->uses->size();
    for (const Wait &use : *block->uses) { // nobody else changes the list of a block that awaits its free
        const std::shared_ptr<Work> work = use.work;
        if (!work->gone)
            note(lock, *work, use.stream);
    }
    arrivals_.splice(arrivals_.end(), *block->uses);
    block->uses.reset();
}

// Completes the frees whose streams have come far enough; waits for all of them if `wait`.
void DeviceLedger::settle(Lock &lock, bool wait) {
    if (wait)
        let_go_of_released(lock);
    while (!arrivals_.empty()) {
        std::list<Wait> &queue = queues_[arrivals_.front().stream];
        queue.splice(queue.end(), arrivals_, arrivals_.begin());
    }
    for (auto queue = queues_.begin(); queue != queues_.end();) {
        const Stream stream = queue->first;
        advance(lock, stream, wait);
        queue = queues_.upper_bound(stream); // the map may have changed
    }
    destroy_spent(lock);
    if (has_idle_pools_)
        release_idle_pools(lock);
}

// Takes from the queue of a stream what the stream is done with. Several threads may be here at a time: what is not done
// stays in the queue, so that each of them sees, and can wait for, all that there is.
void DeviceLedger::advance(Lock &lock, Stream stream, bool wait) {
    for (;;) {
        const auto queue = queues_.find(stream);
        if (queue == queues_.end())
            return;
        std::list<Wait> &waits = queue->second;
        if (waits.empty()) {
            queues_.erase(queue);
            return;
        }
        const std::shared_ptr<Work> work = waits.front().work;
        if (!work->done) {
            if (!is_done(lock, *work, stream, wait))
                return;
            continue; // the lock was given back
        }
        Block *block = waits.front().block;
        spent_.splice(spent_.end(), waits, waits.begin());
        if (block != nullptr && --block->waits == 0)
            complete_free(lock, block);
    }
}

// Destroys the events that nobody has to ask any more.
void DeviceLedger::destroy_spent(Lock &lock) {
    std::list<Wait> spent;
    for (auto wait = spent_.begin(); wait != spent_.end();) {
        const auto next = std::next(wait);
        if (wait->work->users == 0)
            spent.splice(spent.end(), spent_, wait);
        wait = next;
    }
    for (auto wait = spent.begin(); wait != spent.end();) {
        const std::shared_ptr<Work> work = wait->work;
        const Event event = std::exchange(work->event, 0); // others may have the same work
        int status = success;
        if (event != 0) {
            const Unlocked unlocked(lock);
            status = driver_.destroy_event(device_, event);
        }
        if (status != success)
            work->event = event;
        wait = status == success ? spent.erase(wait) : std::next(wait);
    }
    spent_.splice(spent_.end(), spent); // to be tried again
}

// Asking streams

// Keeps the handle of a stream in use, unless the stream is about to be destroyed. One that was not announced is there
// whenever it is named.
bool DeviceLedger::pin(Stream stream) {
    const auto known = announced_.find(stream);
    if (known != announced_.end()) {
        if (known->second.ending)
            return false;
        ++known->second.pins;
    }
    ++pins_of_this_thread;
    return true;
}

void DeviceLedger::unpin(Stream stream) {
    --pins_of_this_thread;
    const auto known = announced_.find(stream);
    if (known != announced_.end() && known->second.pins > 0 && --known->second.pins == 0)
        unpinned_.notify_all();
}

bool DeviceLedger::can_wait_for(Stream stream) {
    CaptureId capture = 0;
    return driver_.capture_of(device_, stream, &capture) != success || capture == 0;
}

// Records the work that is on a stream by now, if nobody has. False if that has to be later: while the stream captures,
// or somebody else is at it. After true there may still be no event: the handle is of no use, here or at all.
bool DeviceLedger::note(Lock &lock, Work &work, Stream stream) {
    if (work.event != 0 || work.users != 0 || !pin(stream))
        return work.event != 0;
    ++work.users;
    Event event = 0;
    bool can_wait;
    {
        const Unlocked unlocked(lock);
        can_wait = can_wait_for(stream);
        if (!can_wait || driver_.record(device_, stream, &event) != success)
            event = 0;
    }
    work.event = event;
    --work.users;
    unpin(stream);
    return can_wait;
}

// Whether a stream has come so far; waits for it if `wait`.
bool DeviceLedger::is_done(Lock &lock, Work &work, Stream stream, bool wait) {
    if (!work.done && !work.gone && !note(lock, work, stream))
        return false;
    if (work.done)
        return true;
    bool done;
    if (const Event event = work.event) {
        ++work.users;
        {
            const Unlocked unlocked(lock);
            done = (wait ? driver_.synchronize(device_, event) : driver_.query(device_, event)) == success;
        }
        --work.users;
    } else { // nothing tells how far it has come but the device as a whole
        done = wait && synchronize_device(lock, nullptr);
    }
    work.done = work.done || done;
    return work.done;
}

// Whether a stream, of which the handle may be used, has nothing to do; waits for that if `wait`.
bool DeviceLedger::is_idle(Lock &lock, Stream stream, bool wait) {
    if (!pin(stream))
        return false;
    bool idle;
    {
        const Unlocked unlocked(lock);
        idle = can_wait_for(stream) &&
               (wait ? driver_.synchronize_stream(device_, stream) : driver_.query_stream(device_, stream)) == success;
    }
    unpin(stream);
    return idle;
}

// Waits for all that the device has to do. False if it failed, or must not be: it would end a capture.
bool DeviceLedger::synchronize_device(Lock &lock, const Stream *current) {
    for (auto known = announced_.begin(); known != announced_.end();) {
        const Stream stream = known->first;
        bool capturing = false;
        if (pin(stream)) { // one that is about to be destroyed has no capture that anybody could want
            {
                const Unlocked unlocked(lock);
                capturing = !can_wait_for(stream);
            }
            unpin(stream);
        }
        if (capturing)
            return false;
        known = announced_.upper_bound(stream); // the map may have changed
    }
    const Unlocked unlocked(lock);
    return can_wait_for(0) && (current == nullptr || can_wait_for(*current)) &&
           driver_.synchronize_device(device_) == success;
}

void DeviceLedger::stream_created(Stream stream) {
    const Lock lock(mutex_);
    announced_.emplace(stream, Announced{});
}

void DeviceLedger::stream_about_to_be_destroyed(Stream stream) {
    const auto end = std::make_shared<Work>(); // all that may throw is done first
    std::list<Wait> wait{{stream, nullptr, end}};
    if (closed_.load(std::memory_order_relaxed)) // a thread that the interpreter's end has stopped never unpins it
        return;
    Lock lock(mutex_);
    const auto known = announced_.find(stream);
    if (stream == 0 || known == announced_.end() || known->second.ending)
        return;
    known->second.ending = true; // from now on nobody else uses the handle
    if (pins_of_this_thread == 0) // else this is a finalizer in a call of the driver that this very thread has made
        unpinned_.wait(lock.held(), [&] { return known->second.pins == 0; });
    bool has_traces = false;
    each_trace_of(stream, [&](std::shared_ptr<Work> &) { has_traces = true; });
    if (has_traces) {
        Event event = 0;
        {
            const Unlocked unlocked(lock);
            if (!can_wait_for(stream) || driver_.record(device_, stream, &event) != success)
                event = 0;
        }
        end->event = event;
        end->gone = true;
        each_trace_of(stream, [&](std::shared_ptr<Work> &work) { work = end; });
        each_heap([&](Heap &heap) {
            if (heap.stream == stream && heap.end == nullptr)
                native_.orphan(heap, end);
        });
        live_.each([&](Block *block) { block->stream_is_gone = block->stream_is_gone || block->stream == stream; });
        arrivals_.splice(arrivals_.end(), wait);
    }
    announced_.erase(known);
}

// Visits what has to know of the end of a stream: the uses of live blocks and the waits of freed ones that are not
// recorded yet, and what stands for the work behind the memory in a heap.
template <typename Visit> void DeviceLedger::each_trace_of(Stream stream, Visit visit) {
    const auto look = [&](std::list<Wait> &waits) {
        for (Wait &wait : waits)
            if (wait.stream == stream && wait.work->event == 0 && !wait.work->gone && !wait.work->done)
                visit(wait.work);
    };
    look(arrivals_);
    const auto queue = queues_.find(stream);
    if (queue != queues_.end())
        look(queue->second);
    live_.each([&](Block *block) {
        if (block->uses != nullptr)
            look(*block->uses);
        if (block->stream == stream && !block->stream_is_gone) {
            std::shared_ptr<Work> unused;
            visit(unused);
        }
    });
    each_heap([&](Heap &heap) {
        std::shared_ptr<Work> unused;
        if (heap.stream == stream && heap.end == nullptr)
            visit(unused);
    });
}

} // namespace tcuda
