// What the ledger does for captures: a pool for what they allocate, and the memory that their graphs read.
#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "ledger/device_ledger.hpp"
#include "driver/stream_key.hpp"

namespace tcuda {

// The capture that a stream takes part in. Called without the lock, for it may ask the driver, which takes long while
// the stream captures.
CaptureId DeviceLedger::capture_of(Stream stream) {
    {
        const Lock lock(mutex_);
        for (const Capture &known : captures_)
            if (std::find(known.streams.begin(), known.streams.end(), stream) != known.streams.end())
                return known.id;
    }
    CaptureId capture = 0;
    if (driver_.capture_of(device_, stream, &capture) != success || capture == 0)
        return 0;
    const Lock lock(mutex_);
    for (Capture &known : captures_)
        if (known.id == capture)
            known.streams.push_back(stream);
    return capture;
}

void DeviceLedger::begin_capture(PoolId id, CaptureId capture) {
    const Lock lock(mutex_);
    routes_.reserve(routes_.size() + 1); // nothing may throw when one of them is there and the others are not
    captures_.reserve(captures_.size() + 1);
    Pool &opened = open_pool(id, nullptr, true, false);
    opened.captured = true;
    captures_.push_back({capture, thread_number(), {}});
    routes_.push_back({&opened, 0, capture});
    ++opened.uses; // a second time: as long as the capture lasts
    is_capturing_.store(true, std::memory_order_relaxed);
}

void DeviceLedger::end_capture(CaptureId capture) noexcept {
    Lock lock(mutex_);
    const auto route =
        std::find_if(routes_.begin(), routes_.end(), [&](const Route &known) { return known.capture == capture; });
    const auto ended =
        std::find_if(captures_.begin(), captures_.end(), [&](const Capture &known) { return known.id == capture; });
    if (route == routes_.end() || ended == captures_.end())
        return;
    --route->pool->uses;
    Block *kept = ended->kept;
    routes_.erase(route);
    captures_.erase(ended);
    is_capturing_.store(!captures_.empty(), std::memory_order_relaxed);
    while (kept != nullptr) {
        Block *block = kept;
        kept = block->right;
        block->right = nullptr;
        unhold(lock, block);
    }
    let_go_of_released(lock);
    // What could not be given back because of the capture, for nobody may wait for the device in one.
    if (std::any_of(pools_.begin(), pools_.end(), [](const auto &known) { return known.second->uses == 0; })) {
        try {
            recycle(lock, everything, true, nullptr, From::unused_pools);
        } catch (const std::exception &) { // later, as with all that the driver fails to take back
        }
    }
}

bool DeviceLedger::has_capture(CaptureId capture) {
    const Lock lock(mutex_);
    return std::any_of(captures_.begin(), captures_.end(), [&](const Capture &known) { return known.id == capture; });
}

// Holds a block that is freed in the middle of a capture: the graph may have come to read it.
void DeviceLedger::keep_for_capture(Block *block) noexcept {
    if (captures_.empty() || closed_.load(std::memory_order_relaxed))
        return;
    const auto own = std::find_if(captures_.begin(), captures_.end(), [&](const Capture &capture) {
        return capture.thread == thread_number() && capture.id != block->capture;
    });
    if (own == captures_.end())
        return;
    ++block->holds;
    block->right = own->kept; // which says nothing else while a block is handed out
    own->kept = block;
}

std::vector<Address> DeviceLedger::hold(const std::vector<Address> &addresses, CaptureId capture) {
    const Lock lock(mutex_);
    std::vector<Block *> live, found;
    const auto containing = [&](Address address) -> Block * {
        if (Block *block = live_.find(address))
            return block;
        if (live.empty()) { // an address in the middle of a block: they have to be in order to find it
            live_.each([&](Block *block) { live.push_back(block); });
            std::sort(live.begin(), live.end(), ByAddress{});
        }
        const auto after = std::upper_bound(live.begin(), live.end(), address,
                                            [](Address wanted, const Block *block) { return wanted < block->address; });
        if (after == live.begin())
            return nullptr;
        Block *block = *std::prev(after);
        return address - block->address < block->size ? block : nullptr;
    };
    for (const Address address : addresses) {
        Block *block = containing(address);
        const bool is_there = block != nullptr && (block->state == Block::State::allocated || block->holds != 0);
        if (is_there && block->capture != capture)
            found.push_back(block);
    }
    std::sort(found.begin(), found.end(), ByAddress{});
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::vector<Address> held;
    held.reserve(found.size());
    for (Block *block : found) {
        ++block->holds;
        held.push_back(block->address);
    }
    return held;
}

void DeviceLedger::unhold(Lock &lock, Block *block) {
    if (--block->holds == 0 && block->state == Block::State::awaiting_free)
        finish_free(lock, block);
}

void DeviceLedger::release_graph(PoolId id, const std::vector<Address> &held, bool replayed) {
    Lock lock(mutex_);
    Pool &known = pool(id);
    if (known.uses == 0)
        throw std::out_of_range("nobody uses the pool");
    std::vector<Address> own;
    std::copy_if(held.begin(), held.end(), std::back_inserter(own),
                 [&](Address address) { return live_.find(address) != nullptr; });
    released_.reserve(released_.size() + own.size());
    const bool last = --known.uses == 0;
    if (replayed && !own.empty()) {
        ++releases_;
        for (const Address address : own)
            released_.push_back({address, releases_});
        let_go_of_released(lock);
    } else {
        for (const Address address : own)
            unhold(lock, live_.find(address));
    }
    if (last)
        recycle(lock, everything, true, nullptr, From::unused_pools);
}

// Waits for the device, unless a capture forbids it: then this comes again when the capture ends.
void DeviceLedger::let_go_of_released(Lock &lock) {
    if (released_.empty())
        return;
    const std::uint64_t noted = releases_; // what comes while the lock is given back waits for the next time
    if (!synchronize_device(lock, nullptr))
        return;
    for (std::size_t i = 0; i < released_.size();) {
        if (released_[i].number > noted) {
            ++i;
            continue;
        }
        Block *block = live_.find(released_[i].address); // which is there as long as it is held
        released_[i] = released_.back();
        released_.pop_back();
        unhold(lock, block); // may give the lock back: others take from the list, too
        i = 0;
    }
}

} // namespace tcuda
