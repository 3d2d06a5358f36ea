#include "memory/host_allocator/host_waits.hpp"

#include <algorithm>

#include "driver/status.hpp"

namespace tcuda {

std::size_t HostWaits::settle(Lock &lock, bool wait, std::size_t again) {
    if (wait)
        lock.leave_interpreter();
    if (driver_.knows_host_uses()) {
        if (wait && !is_in_capture())
            wait_for_devices(lock);
        return ask_for_each(lock, wait, again);
    }
    if (!doubtful_.empty() && gate_.begin_record()) {
        record_batch(lock);
        gate_.end_record();
    }
    std::size_t bytes = 0;
    // Later batches have later events, so the first batch that is not done ends the search.
    for (auto batch = batches_.begin(); batch != batches_.end() && !batch->busy;) {
        batch->busy = true; // no other thread takes the batch out of the list meanwhile
        bool done;
        {
            const Unlocked unlocked(lock);
            done = is_done(batch->events, wait);
        }
        batch->busy = false;
        if (!done)
            break;
        bytes += settled(batch->blocks);
        const auto next = std::next(batch);
        spare_.splice(spare_.end(), batches_, batch);
        batch = next;
    }
    return bytes;
}

// Asks the driver for the uses of each block that was freed since the last call. A call asks about only some of the
// blocks that work used at an earlier call, unless `all`: a program that never waits would else ask about more and more
// blocks.
std::size_t HostWaits::ask_for_each(Lock &lock, bool all, std::size_t again) {
    HostBlockList asked, used, unused;
    asked.swap(doubtful_);
    doubts_ = 0;
    std::size_t count = 0;
    for (; !asked.empty(); ++count) {
        HostBlock *const block = asked.take();
        if (is_unused(lock, block))
            unused.add(block);
        else
            used.add_last(block);
    }
    for (std::size_t left = std::max(again, 2 * count); !used_.empty() && (all || left != 0); --left) {
        HostBlock *const block = used_.take();
        if (is_unused(lock, block))
            unused.add(block);
        else
            used.add_last(block);
    }
    while (!used.empty()) {
        HostBlock *const block = used.take();
        block->state = HostBlock::State::doubtful;
        block->released = false;
        used_.add_last(block);
    }
    return settled(unused);
}

bool HostWaits::is_unused(Lock &lock, HostBlock *block) {
    block->state = HostBlock::State::asked;
    const Unlocked unlocked(lock);
    return driver_.query_host(block->address, block->size) == success;
}

// Records events behind all work for the blocks that were freed before.
void HostWaits::record_batch(Lock &lock) {
    if (spare_.empty()) {
        spare_.emplace_back();
        spare_.back().events.resize(static_cast<std::size_t>(devices_));
    }
    batches_.splice(batches_.end(), spare_, spare_.begin());
    const auto batch = std::prev(batches_.end());
    batch->busy = true;
    batch->blocks.swap(doubtful_);
    doubts_ = 0;
    batch->blocks.each([](HostBlock &block) { block.state = HostBlock::State::asked; });
    bool recorded;
    {
        const Unlocked unlocked(lock);
        recorded = may_ask_all() && record(batch->events);
    }
    // A capture that has begun meanwhile may be that of the work which uses the blocks.
    recorded = recorded && !is_in_capture();
    batch->busy = false;
    if (recorded)
        return;
    while (!batch->blocks.empty())
        free(batch->blocks.take());
    spare_.splice(spare_.end(), batches_, batch);
}

bool HostWaits::wait_for_devices(Lock &lock) {
    const Unlocked unlocked(lock);
    if (!may_ask_all())
        return false;
    for (int device = 0; device < devices_; ++device)
        if (driver_.synchronize_device(device) != success)
            return false;
    return true;
}

bool HostWaits::may_ask_all() const {
    for (int device = 0; device < devices_; ++device)
        if (!may_ask_(device))
            return false;
    return true;
}

bool HostWaits::record(Events &events) {
    for (int device = 0; device < devices_; ++device)
        if (driver_.record_device(device, &events[static_cast<std::size_t>(device)]) != success)
            return false;
    return true;
}

bool HostWaits::is_done(const Events &events, bool wait) {
    for (int device = 0; device < devices_; ++device) {
        const Event event = events[static_cast<std::size_t>(device)];
        if (event != 0 && (wait ? driver_.synchronize(device, event) : driver_.query(device, event)) != success)
            return false;
    }
    return true;
}

std::size_t HostWaits::settled(HostBlockList &blocks) noexcept {
    std::size_t bytes = 0;
    while (!blocks.empty()) {
        HostBlock *const block = blocks.take();
        if (block->holds != 0) {
            block->state = HostBlock::State::held;
            continue;
        }
        if (block->released) {
            free(block);
            continue;
        }
        history_.record(Action::free_completed, block->address, block->requested, 0, block->stack);
        bytes += block->size;
        heap_.give(block);
    }
    return bytes;
}

void HostWaits::destroy_events() noexcept {
    for (std::list<Batch> *batches : {&batches_, &spare_})
        for (Batch &batch : *batches)
            for (int device = 0; device < devices_; ++device)
                if (const Event event = batch.events[static_cast<std::size_t>(device)])
                    driver_.destroy_event(device, event);
}

} // namespace tcuda
