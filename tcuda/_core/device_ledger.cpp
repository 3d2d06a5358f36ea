#include "device_ledger.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "stream_key.hpp"

namespace tcuda {
namespace {

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

// How much of what is handed out may be given back to the driver and taken again, to hold less memory: one byte in so
// many. It bounds the time that this takes, where a program's needs go up and down for ever.
constexpr std::uint64_t handed_out_per_recycled = 16;

// How often an allocation is tried again while other threads are quicker.
constexpr int most_retries = 100;

// How many pins on streams this thread has, on whichever device.
thread_local int pins_of_this_thread = 0;

// The lock is given back while it lives.
class Unlocked {
public:
    explicit Unlocked(std::unique_lock<std::mutex> &lock) : lock_(lock) { lock_.unlock(); }
    ~Unlocked() { lock_.lock(); }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

private:
    std::unique_lock<std::mutex> &lock_;
};

// A pool is not removed while it lives. It is made, and ends, under the lock.
class PinnedPool {
public:
    explicit PinnedPool(Pool &pool) : pool_(pool) { ++pool_.pins; }
    ~PinnedPool() { --pool_.pins; }
    PinnedPool(const PinnedPool &) = delete;
    PinnedPool &operator=(const PinnedPool &) = delete;

private:
    Pool &pool_;
};

} // namespace

std::atomic<StackId (*)()> DeviceLedger::note_stack{nullptr};

Tracker::Tracker(bool of_thread) : thread_(of_thread ? thread_number() : 0) {}

bool Tracker::follows_this_thread() const { return thread_ == 0 || thread_ == thread_number(); }

DeviceLedger::DeviceLedger(int device, Driver &driver, const Settings &settings)
    : device_(device), driver_(driver), settings_(settings),
      native_(device, driver, settings_, statistics_, history_) {
    common_.uses = 1;
    change_settings(settings);
}

DeviceLedger::~DeviceLedger() {
    if (closed_ || abandoned_)
        return;
    const auto forget = [&](Work &work) {
        if (work.event != 0)
            driver_.destroy_event(device_, work.event);
        work.event = 0;
    };
    for (const Wait &wait : arrivals_)
        forget(*wait.work);
    for (const auto &[stream, queue] : queues_)
        for (const Wait &wait : queue)
            forget(*wait.work);
    for (const Wait &wait : spent_)
        forget(*wait.work);
    live_.each([&](const Block *block) {
        if (block->source != nullptr)
            block->source->free(block->address, block->size, device_, block->stream, block->token);
    });
    native_.free_everything();
}

StackId DeviceLedger::stack(Stacks wanted) const {
    if (history_.stacks() < wanted)
        return 0;
    const auto note = note_stack.load(std::memory_order_relaxed);
    try {
        return note == nullptr ? 0 : note();
    } catch (const std::bad_alloc &) {
        return 0; // it costs the stack and nothing else
    }
}

// Allocating

Address DeviceLedger::allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source) {
    if (size == 0)
        return 0;
    const StackId noted = stack(Stacks::live);
    Lock lock(mutex_);
    if (has_waits())
        settle(lock, false);
    Pool &pool = routes_.empty() ? common_ : route();
    Block *block = nullptr;
    if (source != nullptr && &pool == &common_) {
        block = from_source(lock, source, size, stream);
    } else if (const std::size_t rounded = native_.rounded(size)) {
        block = take(pool, stream, rounded);
        if (block == nullptr)
            block = take_or_grow(lock, pool, stream, rounded, noted);
    } else {
        ++statistics_.num_alloc_retries; // which could not help either
    }
    if (block == nullptr)
        fail(lock, size, stream, noted);
    count_allocation(block, size, noted);
    return block->address;
}

// Nothing may fail when a block is taken: so there is room for it in the table before.
Block *DeviceLedger::take(Pool &pool, Stream stream, std::size_t size) {
    live_.reserve_one();
    return native_.take(pool, stream, size);
}

void DeviceLedger::count_allocation(Block *block, std::size_t requested, StackId noted) {
    live_.insert(block->address, block);
    block->stack = noted;
    block->requested = requested;
    const bool large = block->is_large;
    const auto bytes = static_cast<std::int64_t>(block->size);
    statistics_.allocation.increase(large, 1);
    statistics_.allocated_bytes.increase(large, bytes);
    statistics_.active.increase(large, 1);
    statistics_.active_bytes.increase(large, bytes);
    statistics_.requested_bytes.increase(large, static_cast<std::int64_t>(requested));
    block->oversize = block->size >= settings_.max_split_size;
    if (block->oversize)
        statistics_.oversize_allocations.increase(1);
    used_.store(true, std::memory_order_relaxed);
    history_.record(Action::alloc, block->address, requested, block->stream,
                    history_.stacks() >= Stacks::allocations ? noted : 0);
    for (Tracker *tracker : trackers_)
        if (tracker->follows_this_thread()) {
            ++tracker->allocations;
            tracker->allocated += bytes;
            tracker->current += bytes;
            tracker->peak = std::max(tracker->peak, tracker->current);
        }
}

Pool &DeviceLedger::route() {
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->thread == thread_number())
            return *route->pool;
    return common_;
}

Block *DeviceLedger::take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    const PinnedPool pinned(pool);
    collect_garbage(lock, size, stream);
    // What is free elsewhere is given back first, if nothing uses it, so that less memory is held.
    const std::size_t wanted = native_.segment_size(size);
    const bool affordable = recycled_ <= static_cast<std::uint64_t>(statistics_.reserved_bytes.all.current) +
                                             native_.handed_out() / handed_out_per_recycled;
    recycle(lock, wanted, false, &stream, affordable ? From::everywhere : From::destroyed_streams);
    std::uint64_t handed_out = 0;
    for (int retries = 0;; ++retries) {
        if (Block *block = take(pool, stream, size))
            return block;
        if (pool.library != nullptr) {
            if (grow_from_library(lock, pool, stream, size, noted))
                if (Block *block = take(pool, stream, size))
                    return block;
        } else {
            const int status = native_.grow(pool, stream, size, limit(), noted);
            if (status == success)
                return take(pool, stream, size);
            if (status != out_of_memory)
                throw DriverError(status, "taking memory from the driver");
        }
        // The lock was given back, and other threads may have taken what was given back: then it is tried once more.
        const bool others_were_quicker = native_.handed_out() != handed_out;
        if (retries > 0 && (retries == most_retries || !others_were_quicker))
            break;
        if (retries == 0)
            ++statistics_.num_alloc_retries;
        settle(lock, true);
        if (Block *block = take(pool, stream, size))
            return block;
        handed_out = native_.handed_out();
        give_all_back(lock, &stream);
    }
    return take_from_spare_pools(stream, size);
}

bool DeviceLedger::grow_from_library(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    const std::size_t wanted = native_.segment_size(size);
    const std::size_t most = limit();
    if (wanted > most || native_.reserved() > most - wanted)
        return false;
    const std::shared_ptr<ExternalSource> library = pool.library;
    Address address;
    void *token = nullptr;
    {
        const Unlocked unlocked(lock);
        driver_.enter(device_);
        address = library->allocate(wanted, device_, stream, &token);
    }
    if (address == 0)
        return false;
    if (native_.overlaps(address, wanted) || live_.find(address) != nullptr)
        throw DuplicatePointer(address);
    try {
        native_.add_segment(pool, stream, native_.is_large(size), address, wanted, token, noted);
    } catch (...) {
        const Unlocked unlocked(lock);
        library->free(address, wanted, device_, stream, token);
        throw;
    }
    return true;
}

Block *DeviceLedger::take_from_spare_pools(Stream stream, std::size_t size) {
    for (const auto &[id, pool] : pools_)
        if (pool->use_on_oom)
            if (Block *block = take(*pool, stream, size))
                return block;
    return nullptr;
}

Block *DeviceLedger::from_source(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size, Stream stream) {
    if (std::find(sources_.begin(), sources_.end(), source) == sources_.end())
        sources_.push_back(source);
    const bool possible = size <= CachingAllocator::largest;
    const std::size_t taken = possible ? (size + source->unit - 1) / source->unit * source->unit : size;
    const std::size_t most = limit();
    Address address = 0;
    void *token = nullptr;
    for (const bool last : {false, true}) {
        const auto held = source->reserve == Reserve::unknown
                              ? static_cast<std::size_t>(statistics_.allocated_bytes.all.current)
                              : native_.reserved();
        if (possible && (source->reserve == Reserve::reported || (taken <= most && held <= most - taken))) {
            const Unlocked unlocked(lock);
            driver_.enter(device_);
            address = source->allocate(taken, device_, stream, &token);
        }
        if (address != 0)
            break;
        if (!last) {
            ++statistics_.num_alloc_retries;
            settle(lock, true);
            give_all_back(lock, &stream);
        }
    }
    if (address == 0)
        return nullptr;
    if (live_.find(address) != nullptr || native_.overlaps(address, taken))
        throw DuplicatePointer(address); // it would have two owners, and the second free would hit the first
    try {
        return adopt(source, address, taken, stream, token);
    } catch (...) {
        const Unlocked unlocked(lock);
        source->free(address, taken, device_, stream, token);
        throw;
    }
}

// A block for what a source has given.
Block *DeviceLedger::adopt(const std::shared_ptr<ExternalSource> &source, Address address, std::size_t size,
                           Stream stream, void *token) {
    live_.reserve_one();
    Block *block = native_.new_block();
    block->address = address;
    block->size = size;
    block->is_large = native_.is_large(size);
    block->state = Block::State::allocated;
    block->stream = stream;
    block->source = source.get();
    block->token = token;
    if (source->reserve == Reserve::each) {
        statistics_.reserved_bytes.add(block->is_large, static_cast<std::int64_t>(size));
        statistics_.segment.add(block->is_large, 1);
        ++statistics_.num_device_alloc;
        history_.record(Action::segment_alloc, address, size, stream, 0);
    }
    return block;
}

void DeviceLedger::fail(Lock &lock, std::size_t size, Stream stream, StackId noted) {
    ++statistics_.num_ooms;
    merge_recent();
    OutOfMemory facts;
    facts.device = device_;
    facts.requested = size;
    facts.stream = stream;
    facts.limited = fraction_ < 1;
    facts.allocated = static_cast<std::size_t>(statistics_.allocated_bytes.all.current);
    facts.reserved = native_.reserved();
    driver_.memory_info(device_, &facts.free, &facts.total);
    facts.limit = limit_of(facts.total);
    const auto look = [&](const Pool &pool) {
        for (const auto &heap : pool.heaps)
            heap->free.each(
                [&](const Block *block) { facts.largest_free = std::max(facts.largest_free, block->size); });
    };
    look(common_);
    history_.record(Action::oom, facts.free, size, stream, noted);
    lock.unlock();
    throw facts;
}

std::size_t DeviceLedger::limit() {
    if (limit_ == 0) {
        std::size_t free, total;
        if (const int status = driver_.memory_info(device_, &free, &total))
            throw DriverError(status, "asking the driver for its memory");
        limit_ = std::max<std::size_t>(limit_of(total), 1);
    }
    return limit_;
}

std::size_t DeviceLedger::limit_of(std::size_t total) const {
    return fraction_ < 1 ? static_cast<std::size_t>(fraction_ * static_cast<double>(total)) : everything;
}

// Freeing

bool DeviceLedger::free(Address address) noexcept {
    if (abandoned_.load(std::memory_order_relaxed))
        return true;
    const StackId noted = stack(Stacks::all);
    Lock lock(mutex_);
    Block *block = live_.find(address);
    if (block == nullptr || block->state != Block::State::allocated)
        return false;
    const auto bytes = static_cast<std::int64_t>(block->size);
    statistics_.allocation.decrease(block->is_large, 1);
    statistics_.allocated_bytes.decrease(block->is_large, bytes);
    if (block->oversize)
        statistics_.oversize_allocations.decrease(1);
    block->oversize = false;
    history_.record(Action::free_requested, address, block->requested, block->stream, noted);
    for (Tracker *tracker : trackers_)
        if (tracker->follows_this_thread()) {
            tracker->freed += bytes;
            tracker->current -= bytes;
        }
    if (block->uses != nullptr && !closed_.load(std::memory_order_relaxed))
        hold_back(lock, block);
    else
        complete_free(lock, block);
    if (has_idle_pools_)
        release_idle_pools(lock);
    return true;
}

void DeviceLedger::complete_free(Lock &lock, Block *block) {
    const bool large = block->is_large;
    const auto bytes = static_cast<std::int64_t>(block->size);
    statistics_.active.decrease(large, 1);
    statistics_.active_bytes.decrease(large, bytes);
    statistics_.requested_bytes.decrease(large, static_cast<std::int64_t>(block->requested));
    history_.record(Action::free_completed, block->address, block->requested, block->stream, 0);
    live_.erase(block->address);
    if (block->source == nullptr) {
        Pool &pool = *block->pool;
        native_.give(block);
        has_idle_pools_ = has_idle_pools_ || (pool.uses == 0 && pool.live == 0);
        return;
    }
    ExternalSource *source = block->source;
    const Address address = block->address;
    const Stream stream = block->stream;
    void *token = block->token;
    if (source->reserve == Reserve::each) {
        statistics_.reserved_bytes.add(large, -bytes);
        statistics_.segment.add(large, -1);
        ++statistics_.num_device_free;
        history_.record(Action::segment_free, address, block->size, stream, 0);
    }
    native_.delete_block(block);
    if (closed_.load(std::memory_order_relaxed))
        return;
    const Unlocked unlocked(lock);
    driver_.enter(device_);
    source->free(address, static_cast<std::size_t>(bytes), device_, stream, token);
}

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
    bool capturing = false;
    return driver_.is_capturing(device_, stream, &capturing) != success || !capturing;
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
    Lock lock(mutex_);
    const auto known = announced_.find(stream);
    if (stream == 0 || known == announced_.end() || known->second.ending)
        return;
    known->second.ending = true; // from now on nobody else uses the handle
    if (pins_of_this_thread == 0) // else this is a finalizer in a call of the driver that this very thread has made
        unpinned_.wait(lock, [&] { return known->second.pins == 0; });
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

template <typename Visit> void DeviceLedger::each_heap(Visit visit) {
    for (const auto &heap : common_.heaps)
        visit(*heap);
    for (const auto &[id, pool] : pools_)
        for (const auto &heap : pool->heaps)
            visit(*heap);
}

// Giving back

void DeviceLedger::merge_recent() {
    each_heap([&](Heap &heap) { native_.merge_recent(heap); });
}

// Gives free memory back to the driver, `enough` bytes of it or all: of the streams that are idle, or of all streams,
// which are waited for. `current` is the stream of the caller, if there is one.
void DeviceLedger::recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current, From from) {
    if (wait)
        retry();
    std::vector<Candidate> heaps = candidates(current, from);
    std::vector<Heap *> ready;
    ready.reserve(heaps.size());
    const std::uint64_t settled = native_.frees();
    for (const Candidate &candidate : heaps)
        ++candidate.heap->pins;
    find_ready(lock, heaps, wait, current);
    for (const Candidate &candidate : heaps) {
        --candidate.heap->pins;
        if (candidate.ready)
            ready.push_back(candidate.heap);
    }
    std::vector<ReturnedSegment> returned;
    std::vector<std::unique_ptr<Pool>> removed;
    removed.reserve(pools_.size()); // nothing may throw with a segment in hand
    int status = success;
    const std::size_t released = native_.release(ready, settled, enough, returned, &status);
    if (!wait && from == From::everywhere)
        recycled_ += released;
    if (wait && !heaps.empty())
        ++statistics_.num_sync_all_streams;
    remove_unused(removed);
    if (!returned.empty() || !removed.empty()) {
        const Unlocked unlocked(lock);
        driver_.enter(device_);
        for (const ReturnedSegment &segment : returned)
            segment.library->free(segment.address, segment.size, device_, segment.stream, segment.token);
        returned.clear(); // the last references to a library may go here
        removed.clear();
    }
    // Nobody has asked for it where nobody waits: the memory is kept, and a driver that is broken says so soon enough.
    if (status != success && wait)
        throw DriverError(status, "giving memory back to the driver");
}

// The heaps that have something to give back.
std::vector<DeviceLedger::Candidate> DeviceLedger::candidates(const Stream *current, From from) {
    merge_recent();
    std::vector<Candidate> found;
    const auto add = [&](const Pool &pool) {
        for (const auto &heap : pool.heaps) {
            const bool wanted = from != From::destroyed_streams || heap->end != nullptr;
            if (wanted && heap->free.bytes() != 0 && native_.has_releasable(*heap)) {
                const bool is_current = current != nullptr && *current == heap->stream;
                found.push_back({heap.get(), heap->stream == 0 || is_current || announced_.count(heap->stream) != 0});
            }
        }
    };
    if (from != From::unused_pools)
        add(common_);
    for (const auto &[id, pool] : pools_)
        if (pool->uses == 0)
            add(*pool);
    return found;
}

// Finds out of which heaps nothing that is free is used any more. Throws nothing: the heaps are pinned.
void DeviceLedger::find_ready(Lock &lock, std::vector<Candidate> &heaps, bool wait, const Stream *current) {
    const auto is_unknown = [](const Candidate &heap) { return !heap.known && heap.heap->end == nullptr; };
    // A stream of which only the handle is known: nothing tells how far it has come but the device as a whole.
    const bool all = wait && std::any_of(heaps.begin(), heaps.end(), is_unknown) && synchronize_device(lock, current);
    for (Candidate &candidate : heaps) {
        const std::shared_ptr<Work> end = candidate.heap->end;
        const Stream stream = candidate.heap->stream;
        if (all)
            candidate.ready = true;
        else if (end != nullptr)
            candidate.ready = is_done(lock, *end, stream, wait);
        else
            candidate.ready = candidate.known && is_idle(lock, stream, wait);
    }
}

// Offers the driver again what it failed to take back.
void DeviceLedger::retry() {
    native_.retry();
    for (auto segment = reported_segments_.begin(); segment != reported_segments_.end();) {
        const Address address = segment->first;
        const bool unwanted = segment->second.unwanted;
        ++segment;
        if (unwanted)
            give_back(address);
    }
}

// Takes out the heaps of which nothing is left, unless their stream may come again, and the pools that nobody can use
// any more. What a pool leads to, such as a library, must go without the lock: that is left to the caller.
void DeviceLedger::remove_unused(std::vector<std::unique_ptr<Pool>> &removed) {
    const auto remove_heaps = [&](Pool &pool, bool all) {
        for (std::size_t i = pool.heaps.size(); i-- > 0;) {
            Heap &heap = *pool.heaps[i];
            const bool comes_again = heap.end == nullptr && (heap.stream == 0 || announced_.count(heap.stream) != 0);
            if (heap.pins == 0 && CachingAllocator::is_empty(heap) && (all || !comes_again))
                native_.remove(heap);
        }
    };
    remove_heaps(common_, false);
    for (auto known = pools_.begin(); known != pools_.end();) {
        Pool &pool = *known->second;
        const bool unused = pool.uses == 0 && pool.pins == 0;
        remove_heaps(pool, unused);
        if (!unused || !pool.heaps.empty()) {
            ++known;
            continue;
        }
        removed.push_back(std::move(known->second));
        known = pools_.erase(known);
    }
}

// A pool gives its memory back when nobody uses it any more, as far as that is possible without waiting; what streams
// still work on is given back when memory is next asked for, or by empty_cache().
void DeviceLedger::release_idle_pools(Lock &lock) noexcept {
    has_idle_pools_ = false;
    if (closed_.load(std::memory_order_relaxed))
        return;
    try {
        recycle(lock, everything, false, nullptr, From::unused_pools);
    } catch (const std::bad_alloc &) { // later, too
    }
}

void DeviceLedger::collect_garbage(Lock &lock, std::size_t size, Stream stream) {
    if (settings_.garbage_collection_threshold <= 0 || fraction_ >= 1)
        return;
    const auto threshold = static_cast<std::size_t>(settings_.garbage_collection_threshold * static_cast<double>(limit()));
    const std::size_t after = native_.reserved() + native_.segment_size(size);
    if (after > threshold)
        recycle(lock, after - threshold, true, &stream);
}

void DeviceLedger::empty_cache() {
    Lock lock(mutex_);
    settle(lock, true);
    give_all_back(lock, nullptr);
}

// What is free goes back to the driver, whichever source has it.
void DeviceLedger::give_all_back(Lock &lock, const Stream *current) {
    recycle(lock, everything, true, current);
    const auto sources = sources_;
    const Unlocked unlocked(lock);
    for (const auto &source : sources)
        source->empty_cache(device_);
}

Address DeviceLedger::allocate_segment(std::size_t size) {
    const Lock lock(mutex_);
    const std::size_t most = limit();
    Address address = 0;
    if (size == 0 || size > most || native_.reserved() > most - size ||
        driver_.allocate(device_, size, &address) != success)
        return 0;
    try {
        reported_segments_.emplace(address, ReportedSegment{size});
    } catch (...) {
        driver_.free(device_, address);
        throw;
    }
    statistics_.reserved_bytes.add(native_.is_large(size), static_cast<std::int64_t>(size));
    statistics_.segment.add(native_.is_large(size), 1);
    ++statistics_.num_device_alloc;
    history_.record(Action::segment_alloc, address, size, 0, 0);
    return address;
}

void DeviceLedger::free_segment(Address address) noexcept {
    if (abandoned_.load(std::memory_order_relaxed) || closed_.load(std::memory_order_relaxed))
        return;
    const Lock lock(mutex_);
    give_back(address);
}

void DeviceLedger::give_back(Address address) noexcept {
    const auto segment = reported_segments_.find(address);
    if (segment == reported_segments_.end())
        return;
    if (driver_.free(device_, address) != success) {
        segment->second.unwanted = true;
        return;
    }
    const std::size_t size = segment->second.size;
    reported_segments_.erase(segment);
    statistics_.reserved_bytes.add(native_.is_large(size), -static_cast<std::int64_t>(size));
    statistics_.segment.add(native_.is_large(size), -1);
    ++statistics_.num_device_free;
    history_.record(Action::segment_free, address, size, 0, 0);
}

// Pools

Pool &DeviceLedger::pool(PoolId id) { return id == PoolId{0, 0} ? common_ : *pools_.at(id); }

void DeviceLedger::create_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    const Lock lock(mutex_);
    auto &pool = pools_[id];
    if (pool == nullptr) {
        pool = std::make_unique<Pool>();
        pool->id = id;
        pool->library = std::move(library);
        pool->split = split;
        pool->use_on_oom = use_on_oom;
    }
    ++pool->uses;
}

void DeviceLedger::release_pool(PoolId id) {
    Lock lock(mutex_);
    Pool &known = pool(id);
    if (known.uses == 0)
        throw std::out_of_range("nobody uses the pool");
    if (--known.uses == 0)
        recycle(lock, everything, true, nullptr, From::unused_pools);
}

int DeviceLedger::pool_uses(PoolId id) {
    const Lock lock(mutex_);
    return pool(id).uses;
}

void DeviceLedger::begin_pool(PoolId id) {
    const Lock lock(mutex_);
    Pool &known = pool(id);
    routes_.push_back({&known, thread_number()});
    ++known.uses;
}

void DeviceLedger::end_pool(PoolId id) noexcept {
    Lock lock(mutex_);
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->thread == thread_number() && route->pool->id == id) {
            const bool last = --route->pool->uses == 0;
            routes_.erase(std::next(route).base());
            if (last)
                release_idle_pools(lock);
            return;
        }
}

// Asking and setting

void DeviceLedger::change_settings(const Settings &settings) {
    const Lock lock(mutex_);
    settings_ = settings;
    statistics_.max_split_size =
        settings.max_split_size == everything ? -1 : static_cast<std::int64_t>(settings.max_split_size);
}

void DeviceLedger::set_memory_fraction(double fraction) {
    const Lock lock(mutex_);
    fraction_ = fraction;
    limit_ = 0;
}

double DeviceLedger::memory_fraction() {
    const Lock lock(mutex_);
    return fraction_;
}

Statistics DeviceLedger::statistics() {
    const Lock lock(mutex_);
    merge_recent();
    return statistics_;
}

DeviceLedger::Bytes DeviceLedger::bytes() {
    const Lock lock(mutex_);
    return {statistics_.allocated_bytes.all, statistics_.reserved_bytes.all};
}

void DeviceLedger::reset_peaks() {
    const Lock lock(mutex_);
    merge_recent();
    statistics_.each_counter([](Counter &counter) { counter.reset_peak(); });
}

void DeviceLedger::reset_accumulated() {
    const Lock lock(mutex_);
    merge_recent();
    statistics_.each_counter([](Counter &counter) { counter.reset_accumulated(); });
    statistics_.num_alloc_retries = statistics_.num_ooms = statistics_.num_sync_all_streams =
        statistics_.num_device_alloc = statistics_.num_device_free = 0;
}

void DeviceLedger::attach(Tracker *tracker) {
    const Lock lock(mutex_);
    trackers_.push_back(tracker);
}

bool DeviceLedger::detach(Tracker *tracker) {
    const Lock lock(mutex_);
    const auto known = std::find(trackers_.begin(), trackers_.end(), tracker);
    if (known == trackers_.end())
        return false;
    trackers_.erase(known);
    return true;
}

Tracker DeviceLedger::read(const Tracker &tracker) {
    const Lock lock(mutex_);
    return tracker;
}

void DeviceLedger::record_history(Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear) {
    const Lock lock(mutex_);
    if (clear)
        history_.clear();
    history_.enable(stacks, capacity, skipped);
}

void DeviceLedger::stop_history() {
    const Lock lock(mutex_);
    history_.disable();
}

void DeviceLedger::set_metadata(std::uint32_t metadata) {
    const Lock lock(mutex_);
    history_.set_metadata(metadata);
}

std::size_t DeviceLedger::size_of(Address address) {
    const Lock lock(mutex_);
    const Block *block = live_.find(address);
    return block == nullptr || block->state != Block::State::allocated ? 0 : block->size;
}

std::vector<Occurrence> DeviceLedger::events() {
    const Lock lock(mutex_);
    return history_.events();
}

std::vector<SegmentView> DeviceLedger::snapshot(const PoolId *only) {
    const Lock lock(mutex_);
    merge_recent();
    std::vector<SegmentView> views;
    const auto view = [](const Block *block) {
        return BlockView{block->address, block->size, block->requested, block->state, block->stack};
    };
    for (const Segment *segment : native_.segments()) {
        const Heap &heap = *segment->heap;
        if (only != nullptr && heap.pool->id != *only)
            continue;
        bool open = false; // a range without physical memory ends what is shown as a segment
        for (const Block *block = segment->first; block != nullptr; block = block->after) {
            if (!block->is_mapped()) {
                open = false;
                continue;
            }
            if (!open)
                views.push_back({block->address, 0, heap.stream, heap.is_large, segment->expandable, heap.pool->id,
                                 segment->stack, {}});
            open = true;
            views.back().size += block->size;
            views.back().blocks.push_back(view(block));
        }
    }
    if (only == nullptr || *only == PoolId{0, 0}) {
        std::map<Address, SegmentView> external;
        for (const auto &[address, segment] : reported_segments_)
            external.emplace(address, SegmentView{address, segment.size, 0, native_.is_large(segment.size), false,
                                                  {0, 0}, 0, {}});
        std::vector<const Block *> blocks;
        live_.each([&](const Block *block) {
            if (block->source != nullptr)
                blocks.push_back(block);
        });
        std::sort(blocks.begin(), blocks.end(), [](auto *left, auto *right) { return left->address < right->address; });
        for (const Block *block : blocks) {
            auto after = external.upper_bound(block->address);
            const bool within = after != external.begin() &&
                                block->address < std::prev(after)->first + std::prev(after)->second.size;
            if (within) {
                std::prev(after)->second.stream = block->stream;
                std::prev(after)->second.blocks.push_back(view(block));
            } else {
                external.emplace(block->address, SegmentView{block->address, block->size, block->stream, block->is_large,
                                                             false, {0, 0}, block->stack, {view(block)}});
            }
        }
        for (auto &[address, segment] : external) {
            std::vector<BlockView> filled; // what lies between the blocks is free
            Address at = address;
            const auto gap = [&](Address to) {
                if (to > at)
                    filled.push_back({at, to - at, 0, Block::State::free, 0});
            };
            for (const BlockView &block : segment.blocks) {
                gap(block.address);
                filled.push_back(block);
                at = block.address + block.size;
            }
            gap(address + segment.size);
            segment.blocks = std::move(filled);
            views.push_back(std::move(segment));
        }
    }
    std::sort(views.begin(), views.end(), [](const auto &left, const auto &right) { return left.address < right.address; });
    return views;
}

} // namespace tcuda
