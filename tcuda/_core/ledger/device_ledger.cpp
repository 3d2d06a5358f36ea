#include "ledger/device_ledger.hpp"

#include <algorithm>
#include <stdexcept>

#include "driver/stream_key.hpp"

namespace tcuda {
namespace {

// How much of what is handed out may be given back to the driver and taken again, to hold less memory: one byte in so
// many. It bounds the time that this takes, where a program's needs go up and down for ever.
constexpr std::uint64_t handed_out_per_recycled = 16;

// How often an allocation is tried again while other threads are quicker.
constexpr int most_retries = 100;

} // namespace

std::atomic<StackId (*)()> DeviceLedger::note_stack{nullptr};

DeviceLedger::DeviceLedger(int device, Driver &driver, const Settings &settings)
    : device_(device), driver_(driver), settings_(settings),
      native_(device, driver, settings_, statistics_, history_) {
    common_.uses = 1;
    change_settings(settings);
}

DeviceLedger::~DeviceLedger() {
    if (closed_ || abandoned_)
        return;
    Absence absence;
    absence.leave(); // the driver may wait for the device
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

Address DeviceLedger::allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source,
                               std::size_t *block_size) {
    if (size == 0)
        return 0;
    const StackId noted = stack(Stacks::live);
    const NotedCall call(records_stacks(), noted);
    const CaptureId capture = is_capturing_.load(std::memory_order_relaxed) ? capture_of(stream) : 0;
    Lock lock(mutex_);
    if (has_waits())
        settle(lock, false);
    Pool &pool = routes_.empty() ? common_ : route(capture);
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
    count_allocation(block, size, capture, noted);
    if (block_size != nullptr)
        *block_size = block->size;
    return block->address;
}

// Nothing may fail when a block is taken: so there is room for it in the table before.
Block *DeviceLedger::take(Pool &pool, Stream stream, std::size_t size) {
    live_.reserve_one();
    return native_.take(pool, stream, size);
}

void DeviceLedger::count_allocation(Block *block, std::size_t requested, CaptureId capture, StackId noted) {
    live_.insert(block->address, block);
    block->stack = noted;
    block->capture = capture;
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
    history_.record(Action::alloc, block->address, requested, block->stream, noted);
    trackers_.count_allocation(bytes);
}

Pool &DeviceLedger::route(CaptureId capture) {
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->capture != 0 ? route->capture == capture : route->thread == thread_number())
            return *route->pool;
    return common_;
}

Block *DeviceLedger::take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    lock.leave_interpreter();
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
            const int status = native_.grow(pool, stream, size, limit(lock), noted);
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
    const std::size_t most = limit(lock);
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
    const std::size_t most = limit(lock);
    Address address = 0;
    void *token = nullptr;
    for (const bool last : {false, true}) {
        const auto held = source->reserve == Reserve::unknown
                              ? static_cast<std::size_t>(statistics_.allocated_bytes.all.current)
                              : native_.reserved();
        if (possible && (source->reserve == Reserve::reported || (taken <= most && held <= most - taken))) {
            if (source->reserve == Reserve::each)
                lock.leave_interpreter();
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
    lock.leave_interpreter();
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

std::size_t DeviceLedger::limit(Lock &lock) {
    if (limit_ == 0) {
        lock.leave_interpreter();
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
    const NotedCall call(records_stacks(), stack(Stacks::all));
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
    history_.record(Action::free_requested, address, block->requested, block->stream, block->stack);
    trackers_.count_free(bytes);
    keep_for_capture(block);
    if (block->holds != 0)
        block->state = Block::State::awaiting_free;
    else
        finish_free(lock, block);
    if (has_idle_pools_)
        release_idle_pools(lock);
    return true;
}

void DeviceLedger::finish_free(Lock &lock, Block *block) {
    if (block->uses != nullptr && !closed_.load(std::memory_order_relaxed))
        hold_back(lock, block);
    else
        complete_free(lock, block);
}

void DeviceLedger::complete_free(Lock &lock, Block *block) {
    const bool large = block->is_large;
    const auto bytes = static_cast<std::int64_t>(block->size);
    statistics_.active.decrease(large, 1);
    statistics_.active_bytes.decrease(large, bytes);
    statistics_.requested_bytes.decrease(large, static_cast<std::int64_t>(block->requested));
    history_.record(Action::free_completed, block->address, block->requested, block->stream, block->stack);
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
        history_.record(Action::segment_free, address, block->size, stream, block->stack);
    }
    native_.delete_block(block);
    if (closed_.load(std::memory_order_relaxed))
        return;
    if (source->reserve == Reserve::each)
        lock.leave_interpreter();
    const Unlocked unlocked(lock);
    driver_.enter(device_);
    source->free(address, static_cast<std::size_t>(bytes), device_, stream, token);
}

// Pools

Pool &DeviceLedger::pool(PoolId id) { return id == PoolId{0, 0} ? common_ : *pools_.at(id); }

void DeviceLedger::create_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    const Lock lock(mutex_);
    open_pool(id, std::move(library), split, use_on_oom);
}

Pool &DeviceLedger::open_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    auto &pool = pools_[id];
    if (pool == nullptr) {
        pool = std::make_unique<Pool>();
        pool->id = id;
        pool->library = std::move(library);
        pool->split = split;
        pool->use_on_oom = use_on_oom;
    }
    ++pool->uses;
    return *pool;
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

void DeviceLedger::begin_pool(PoolId id, std::uint64_t use) {
    const Lock lock(mutex_);
    Pool &known = pool(id);
    routes_.push_back({&known, thread_number(), 0, use});
    ++known.uses;
}

void DeviceLedger::end_pool(PoolId id, std::uint64_t use) noexcept {
    Lock lock(mutex_);
    for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
        if (route->capture == 0 && route->use == use && (use != 0 || route->thread == thread_number()) &&
            route->pool->id == id) {
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
    trackers_.attach(tracker);
}

bool DeviceLedger::detach(Tracker *tracker) {
    const Lock lock(mutex_);
    return trackers_.detach(tracker);
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

void DeviceLedger::set_metadata(Metadata metadata) {
    const Lock lock(mutex_);
    history_.set_metadata(std::move(metadata));
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

} // namespace tcuda
