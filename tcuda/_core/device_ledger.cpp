#include "device_ledger.hpp"

#include <algorithm>
#include <limits>

namespace tcuda {
namespace {

thread_local char this_thread; // its address tells threads apart

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

// How much of what is handed out may be given back to the driver and taken again, to hold less memory: one byte in so
// many. It bounds the time that this takes, where a program's needs go up and down for ever.
constexpr std::uint64_t handed_out_per_recycled = 16;

} // namespace

std::atomic<StackId (*)()> DeviceLedger::note_stack{nullptr};

Tracker::Tracker(bool of_thread) : thread_(of_thread ? &this_thread : nullptr) {}

bool Tracker::follows_this_thread() const { return thread_ == nullptr || thread_ == &this_thread; }

DeviceLedger::DeviceLedger(int device, Driver &driver, const Settings &settings)
    : device_(device), driver_(driver), settings_(settings),
      native_(device, driver, settings_, statistics_, history_) {
    common_.uses = 1;
    change_settings(settings);
}

DeviceLedger::~DeviceLedger() {
    if (closed_ || abandoned_)
        return;
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
    return note == nullptr ? 0 : note();
}

// Allocating

Address DeviceLedger::allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source) {
    const StackId noted = stack(Stacks::live);
    Lock lock(mutex_);
    if (!queues_.empty())
        settle(lock, false);
    live_.reserve_one();
    Pool &pool = routes_.empty() ? common_ : route();
    Block *block;
    if (source != nullptr && &pool == &common_) {
        block = from_source(lock, source, size, stream);
    } else {
        const std::size_t rounded = native_.rounded(size);
        block = rounded == 0 ? nullptr : native_.take(pool, stream, rounded);
        if (block == nullptr)
            block = take_or_grow(lock, pool, stream, rounded == 0 ? size : rounded, noted);
    }
    if (block == nullptr)
        fail(lock, size, stream, noted);
    block->requested = size;
    count_allocation(block, noted);
    return block->address;
}

void DeviceLedger::count_allocation(Block *block, StackId noted) {
    live_.insert(block->address, block);
    block->stack = noted;
    const bool large = block->is_large;
    const auto bytes = static_cast<std::int64_t>(block->size);
    statistics_.allocation.increase(large, 1);
    statistics_.allocated_bytes.increase(large, bytes);
    statistics_.active.increase(large, 1);
    statistics_.active_bytes.increase(large, bytes);
    statistics_.requested_bytes.increase(large, static_cast<std::int64_t>(block->requested));
    if (block->size >= settings_.max_split_size)
        statistics_.oversize_allocations.add(1);
    used_.store(true, std::memory_order_relaxed);
    history_.record(Action::alloc, block->address, block->size, block->stream,
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
        if (route->thread == &this_thread)
            return *route->pool;
    return common_;
}

Block *DeviceLedger::take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    collect_garbage(lock, size, stream);
    // What is free elsewhere is given back first, if nothing uses it, so that less memory is held.
    const std::size_t wanted = native_.segment_size(size);
    if (recycled_ <= static_cast<std::uint64_t>(statistics_.reserved_bytes.all.current) +
                         native_.handed_out() / handed_out_per_recycled)
        recycle(lock, wanted, false, &stream);
    for (const bool last : {false, true}) {
        if (Block *block = native_.take(pool, stream, size))
            return block;
        if (pool.library != nullptr) {
            if (grow_from_library(lock, pool, stream, size, noted))
                if (Block *block = native_.take(pool, stream, size))
                    return block;
        } else {
            const int status = native_.grow(pool, stream, size, limit(), noted);
            if (status == success)
                return native_.take(pool, stream, size);
            if (status != out_of_memory)
                throw DriverError(status, "taking memory from the driver");
        }
        if (!last) {
            ++statistics_.num_alloc_retries;
            settle(lock, true);
            if (Block *block = native_.take(pool, stream, size))
                return block;
            recycle(lock, everything, true, &stream);
        }
    }
    return take_from_spare_pools(stream, size);
}

bool DeviceLedger::grow_from_library(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    const std::size_t wanted = native_.segment_size(size);
    const std::size_t most = limit();
    if (wanted > most || native_.reserved() > most - wanted)
        return false;
    const std::shared_ptr<ExternalSource> library = pool.library;
    void *token = nullptr;
    lock.unlock();
    const Address address = library->allocate(wanted, device_, stream, &token);
    lock.lock();
    if (address == 0)
        return false;
    native_.add_segment(pool, stream, native_.is_large(size), address, wanted, token, noted);
    return true;
}

Block *DeviceLedger::take_from_spare_pools(Stream stream, std::size_t size) {
    for (const auto &[id, pool] : pools_)
        if (pool->use_on_oom)
            if (Block *block = native_.take(*pool, stream, size))
                return block;
    return nullptr;
}

Block *DeviceLedger::from_source(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size, Stream stream) {
    if (std::find(sources_.begin(), sources_.end(), source) == sources_.end())
        sources_.push_back(source);
    const std::size_t unit = source->unit;
    if (size > everything - unit)
        return nullptr;
    const std::size_t taken = (size + unit - 1) / unit * unit;
    const std::size_t most = limit();
    Address address = 0;
    void *token = nullptr;
    for (const bool last : {false, true}) {
        const auto held = source->reserve == Reserve::unknown
                              ? static_cast<std::size_t>(statistics_.allocated_bytes.all.current)
                              : native_.reserved();
        const bool fits = source->reserve == Reserve::reported || (taken <= most && held <= most - taken);
        if (fits) {
            lock.unlock();
            address = source->allocate(taken, device_, stream, &token);
            lock.lock();
        }
        if (address != 0)
            break;
        if (!last) {
            ++statistics_.num_alloc_retries;
            settle(lock, true);
            lock.unlock();
            source->empty_cache(device_);
            lock.lock();
        }
    }
    if (address == 0)
        return nullptr;
    if (live_.find(address) != nullptr) { // it would have two owners, and the second free would hit the first
        throw DuplicatePointer(address);
    }
    live_.reserve_one();
    Block *block = native_.new_block();
    block->address = address;
    block->size = taken;
    block->is_large = native_.is_large(taken);
    block->state = Block::State::allocated;
    block->stream = stream;
    block->source = source.get();
    block->token = token;
    if (source->reserve == Reserve::each) {
        statistics_.reserved_bytes.add(block->is_large, static_cast<std::int64_t>(taken));
        statistics_.segment.add(block->is_large, 1);
        ++statistics_.num_device_alloc;
        history_.record(Action::segment_alloc, address, taken, stream, 0);
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
    facts.limit = limit();
    facts.limited = fraction_ < 1;
    facts.allocated = static_cast<std::size_t>(statistics_.allocated_bytes.all.current);
    facts.reserved = native_.reserved();
    driver_.memory_info(device_, &facts.free, &facts.total);
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
        limit_ = fraction_ < 1 ? static_cast<std::size_t>(fraction_ * static_cast<double>(total)) : everything;
        limit_ = std::max<std::size_t>(limit_, 1);
    }
    return limit_;
}

// Freeing

bool DeviceLedger::free(Address address) {
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
    if (block->size >= settings_.max_split_size)
        statistics_.oversize_allocations.add(-1);
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
        native_.give(block);
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
    lock.unlock();
    source->free(address, static_cast<std::size_t>(bytes), device_, stream, token);
    lock.lock();
}

bool DeviceLedger::record_stream(Address address, Stream stream) {
    const Lock lock(mutex_);
    Block *block = live_.find(address);
    if (block == nullptr || block->state != Block::State::allocated)
        return false;
    if (stream == block->stream)
        return true;
    if (block->uses == nullptr)
        block->uses = std::make_unique<std::vector<Block::Use>>();
    const auto same = [&](const Block::Use &use) { return use.stream == stream && use.event == 0; };
    if (std::none_of(block->uses->begin(), block->uses->end(), same))
        block->uses->push_back({stream, 0});
    return true;
}

// Puts a block into the queue of every stream that uses it, at the work that is there now.
void DeviceLedger::hold_back(Lock &lock, Block *block) {
    block->state = Block::State::awaiting_free;
    block->waits = block->uses->size();
    const std::vector<Block::Use> uses = *block->uses;
    lock.unlock();
    std::vector<Event> events;
    for (const auto &[stream, known] : uses) {
        Event event = known;
        if (event == 0 && (!can_wait_for(stream) || driver_.record(device_, stream, &event) != success))
            event = 0;
        events.push_back(event);
    }
    lock.lock();
    for (std::size_t i = 0; i < uses.size(); ++i) {
        const auto of_stream = [&](const Queue &queue) { return queue.stream == uses[i].stream; };
        auto queue = std::find_if(queues_.begin(), queues_.end(), of_stream);
        if (queue == queues_.end())
            queue = queues_.insert(queues_.end(), Queue{uses[i].stream, {}});
        queue->waits.push_back({block, events[i]});
    }
}

// Completes the frees whose streams have come far enough; waits for all of them if `wait`.
void DeviceLedger::settle(Lock &lock, bool wait) {
    std::vector<Queue> queues;
    queues.swap(queues_);
    lock.unlock();
    std::vector<Block *> passed; // once for each stream that a block has no longer to wait for
    for (Queue &queue : queues) {
        std::size_t done = 0;
        while (done < queue.waits.size() && advance(queue.waits[done], queue.stream, wait))
            passed.push_back(queue.waits[done++].block);
        queue.waits.erase(queue.waits.begin(), queue.waits.begin() + static_cast<std::ptrdiff_t>(done));
    }
    lock.lock();
    for (Queue &queue : queues) {
        if (queue.waits.empty())
            continue;
        const auto of_stream = [&](const Queue &other) { return other.stream == queue.stream; };
        const auto newer = std::find_if(queues_.begin(), queues_.end(), of_stream);
        if (newer == queues_.end())
            queues_.push_back(std::move(queue));
        else
            newer->waits.insert(newer->waits.begin(), queue.waits.begin(), queue.waits.end());
    }
    for (Block *block : passed) {
        if (--block->waits == 0) {
            block->uses.reset();
            complete_free(lock, block);
        }
    }
}

// Whether the stream has done what it had to do. An event that could not be recorded is recorded now.
bool DeviceLedger::advance(Wait &wait, Stream stream, bool wait_for_it) {
    if (wait.event == 0) {
        if (!can_wait_for(stream))
            return false;
        if (driver_.record(device_, stream, &wait.event) != success) {
            wait.event = 0;
            // The stream is gone: nothing tells how far its work has come but the device as a whole.
            return driver_.synchronize_device(device_) == success;
        }
    }
    const int status = wait_for_it ? driver_.synchronize(device_, wait.event) : driver_.query(device_, wait.event);
    if (status != success)
        return false;
    driver_.destroy_event(device_, wait.event);
    return true;
}

bool DeviceLedger::can_wait_for(Stream stream) {
    bool capturing = false;
    return driver_.is_capturing(device_, stream, &capturing) != success || !capturing;
}

// Giving back

void DeviceLedger::merge_recent() {
    const auto merge = [&](const Pool &pool) {
        for (const auto &heap : pool.heaps)
            native_.merge_recent(*heap);
    };
    merge(common_);
    for (const auto &[id, pool] : pools_)
        merge(*pool);
}

std::vector<Heap *> DeviceLedger::heaps_to_release() {
    merge_recent();
    std::vector<Heap *> heaps;
    const auto add = [&](const Pool &pool) {
        for (const auto &heap : pool.heaps)
            if (heap->free.bytes() != 0 && native_.has_releasable(*heap))
                heaps.push_back(heap.get());
    };
    add(common_);
    for (const auto &[id, pool] : pools_)
        if (pool->uses == 0)
            add(*pool);
    return heaps;
}

// Gives free memory back to the driver, `enough` bytes of it or all: of the streams that are idle, or of all streams,
// which are waited for. `current` is the stream of the caller, if there is one.
void DeviceLedger::recycle(Lock &lock, std::size_t enough, bool wait, const Stream *current) {
    std::vector<Heap *> heaps = heaps_to_release();
    if (heaps.empty())
        return;
    std::vector<bool> known;
    for (const Heap *heap : heaps)
        known.push_back(is_known(*heap, current));
    const std::vector<Stream> streams(announced_.begin(), announced_.end());
    const std::uint64_t settled = native_.frees();
    lock.unlock();
    bool device_is_settled = false;
    if (wait && std::find(known.begin(), known.end(), false) != known.end()) {
        // A stream of which only the handle is known: nothing tells how far it has come but the device as a whole, which
        // must not be waited for while anything captures.
        const auto waits_for_nothing = [&](Stream stream) { return can_wait_for(stream); };
        device_is_settled = can_wait_for(0) && (current == nullptr || can_wait_for(*current)) &&
                            std::all_of(streams.begin(), streams.end(), waits_for_nothing) &&
                            driver_.synchronize_device(device_) == success;
    }
    std::vector<Heap *> ready;
    for (std::size_t i = 0; i < heaps.size(); ++i)
        if (is_settled(*heaps[i], wait, known[i], device_is_settled))
            ready.push_back(heaps[i]);
    lock.lock();
    std::vector<ReturnedSegment> returned;
    int status = success;
    const std::size_t released = native_.release(ready, settled, enough, returned, &status);
    if (!wait)
        recycled_ += released;
    else
        ++statistics_.num_sync_all_streams;
    free_returned(lock, returned);
    if (status != success && wait)
        throw DriverError(status, "giving memory back to the driver");
}

// Whether the stream of a heap may be asked, and waited for, by its handle.
bool DeviceLedger::is_known(const Heap &heap, const Stream *current) const {
    return heap.orphaned || heap.stream == 0 || (current != nullptr && *current == heap.stream) ||
           announced_.count(heap.stream) != 0;
}

// Whether nothing uses what is free in a heap any more.
bool DeviceLedger::is_settled(Heap &heap, bool wait, bool known, bool device_is_settled) {
    if (device_is_settled)
        return true;
    if (!known)
        return false;
    if (heap.orphaned) {
        const Event event = heap.last_work;
        return event == 0 || (wait ? driver_.synchronize(device_, event) : driver_.query(device_, event)) == success;
    }
    if (!can_wait_for(heap.stream))
        return false;
    return (wait ? driver_.synchronize_stream(device_, heap.stream) : driver_.query_stream(device_, heap.stream)) == success;
}

void DeviceLedger::stream_created(Stream stream) {
    const Lock lock(mutex_);
    announced_.insert(stream);
}

void DeviceLedger::stream_about_to_be_destroyed(Stream stream) {
    Lock lock(mutex_);
    if (stream == 0 || announced_.erase(stream) == 0)
        return;
    // What its frees wait for has to be noted while it is there.
    const auto last_work = [&] {
        Event event = 0;
        lock.unlock();
        if (!can_wait_for(stream) || driver_.record(device_, stream, &event) != success) {
            event = 0;
            driver_.synchronize_device(device_);
        }
        lock.lock();
        return event;
    };
    std::vector<Heap *> orphans;
    const auto orphan = [&](Pool &pool) {
        for (const auto &heap : pool.heaps)
            if (heap->stream == stream && !heap->orphaned) {
                native_.orphan(*heap);
                orphans.push_back(heap.get());
            }
    };
    orphan(common_);
    for (const auto &[id, pool] : pools_)
        orphan(*pool);
    for (Heap *heap : orphans)
        heap->last_work = last_work();
    std::vector<std::pair<Address, Event>> used;
    live_.each([&](const Block *block) {
        if (block->uses != nullptr && block->state == Block::State::allocated)
            for (const Block::Use &use : *block->uses)
                if (use.stream == stream && use.event == 0)
                    used.push_back({block->address, 0});
    });
    for (auto &[address, event] : used)
        event = last_work();
    for (const auto &[address, event] : used) { // it may have been freed meanwhile, with an event of its own
        Block *block = live_.find(address);
        if (block != nullptr && block->uses != nullptr && block->state == Block::State::allocated)
            for (Block::Use &use : *block->uses)
                if (use.stream == stream && use.event == 0)
                    use.event = event;
    }
}

void DeviceLedger::free_returned(Lock &lock, std::vector<ReturnedSegment> &returned) {
    if (returned.empty())
        return;
    lock.unlock();
    for (const ReturnedSegment &segment : returned)
        segment.library->free(segment.address, segment.size, device_, segment.stream, segment.token);
    returned.clear(); // the last reference to a library may go here
    lock.lock();
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
    recycle(lock, everything, true, nullptr);
    const auto sources = sources_;
    lock.unlock();
    for (const auto &source : sources)
        source->empty_cache(device_);
}

Address DeviceLedger::allocate_segment(std::size_t size) {
    const Lock lock(mutex_);
    const std::size_t most = limit();
    Address address = 0;
    if (size > most || native_.reserved() > most - size || driver_.allocate(device_, size, &address) != success)
        return 0;
    reported_segments_.emplace(address, size);
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
    const auto segment = reported_segments_.find(address);
    if (segment == reported_segments_.end() || driver_.free(device_, address) != success)
        return;
    const std::size_t size = segment->second;
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
    if (--pool(id).uses == 0)
        recycle(lock, everything, true, nullptr);
}

int DeviceLedger::pool_uses(PoolId id) {
    const Lock lock(mutex_);
    return pool(id).uses;
}

void DeviceLedger::begin_pool(PoolId id) {
    const Lock lock(mutex_);
    routes_.push_back({&pool(id), &this_thread});
    ++pool(id).uses;
}

void DeviceLedger::end_pool(PoolId id) noexcept {
    const Lock lock(mutex_);
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->thread == &this_thread && route->pool->id == id) {
            --route->pool->uses;
            routes_.erase(std::next(route).base());
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

void DeviceLedger::detach(Tracker *tracker) {
    const Lock lock(mutex_);
    trackers_.erase(std::remove(trackers_.begin(), trackers_.end(), tracker), trackers_.end());
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
        for (const auto &[address, size] : reported_segments_)
            external.emplace(address, SegmentView{address, size, 0, native_.is_large(size), false, {0, 0}, 0, {}});
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
