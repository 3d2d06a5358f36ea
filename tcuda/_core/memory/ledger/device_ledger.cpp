#include "memory/ledger/device_ledger.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <list>
#include <new>
#include <utility>

#include "memory/allocator/heap.hpp"
#include "memory/allocator/sizes.hpp"
#include "memory/ledger/snapshot.hpp"
#include "memory/records/caller_stack.hpp"
#include "memory/records/noted_call.hpp"

namespace tcuda {
namespace {

// How often an allocation is tried again while other threads take the memory that it has made free.
constexpr int most_retries = 100;

} // namespace

DeviceLedger::DeviceLedger(int device, Driver &driver, const Settings &settings, CaptureGate &gate)
    : device_(device), driver_(driver), checkpoint_(device, driver, shutdown_, native_, progress_, gate) {
    change_settings(settings);
}

DeviceLedger::~DeviceLedger() {
    if (shutdown_.is_closed() || shutdown_.is_abandoned())
        return;
    Absence absence;
    absence.leave(); // the driver may wait for the device
    waits_.destroy_events();
    checkpoint_.destroy_event();
    imported_.close_everything();
    external_.free_everything();
    native_.free_everything();
    pools_.drop_contents();
}

// Allocating

Address DeviceLedger::allocate(std::size_t size, Stream stream, const std::shared_ptr<ExternalSource> &source,
                               std::size_t *block_size, Relief *relief) {
    if (size == 0)
        return 0;
    for (;;) {
        const StackId noted = stack(Stacks::live);
        const Scope *const scope = CallerScope::current();
        {
            const NotedCall call(records_stacks(), noted, scope);
            const StackId caller = is_observed() ? caller_stack(noted) : 0;
            const CaptureId capture = captures_.any() ? capture_of(stream) : 0;
            Lock lock(mutex_);
            if (!waits_.empty() || checkpoint_.is_recorded())
                settle(lock, false);
            Pool &pool = routes_.empty() ? pools_.common() : routes_.pool_for(capture, pools_.common());
            Block *block = nullptr;
            if (source != nullptr && &pool == &pools_.common()) {
                block = take_from_source(lock, source, size, stream);
            } else if (const std::size_t rounded = native_.rounded(size)) {
                block = take(pool, stream, rounded);
                if (block == nullptr)
                    block = take_or_grow(lock, pool, stream, rounded, noted);
            } else {
                ++statistics_.num_alloc_retries; // torch counts a retry, although a retry cannot help
            }
            if (block != nullptr) {
                live_.add(block, size, capture, noted, scope);
                if (MemoryObserver *const observer = observer_.load(std::memory_order_relaxed))
                    observer->memory_allocated(block->address, size, device_, stream, caller);
                if (block_size != nullptr)
                    *block_size = block->size;
                if (poison_.is_on())
                    poison_.fill(lock, block);
                return block->address;
            }
        }
        // Here the thread has Python's lock again, if the thread had the lock before.
        if (relief == nullptr || !relief->relieve(device_, size)) {
            Lock lock(mutex_);
            fail(lock, size, stream, noted, scope);
        }
    }
}

// Throws PoolAsleep. Called again after each time without the lock, in which the pool may have fallen asleep.
void DeviceLedger::check_awake(const Pool &pool) const {
    if (pool.rest != Pool::Rest::awake)
        throw PoolAsleep(device_, pool.id);
}

// Takes free memory. Makes room in the table of live blocks before, so that nothing can fail once the block is taken.
Block *DeviceLedger::take(Pool &pool, Stream stream, std::size_t size) {
    check_awake(pool);
    live_.reserve_one();
    return native_.take(pool, stream, size);
}

Block *DeviceLedger::take_or_grow(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    if (native_.open_kept_window(pool, stream, size))
        if (Block *block = take(pool, stream, size))
            return block;
    lock.leave_interpreter();
    const PinnedPool pinned(pool);
    // The calls of the driver for a window are wasted while there is plenty of new memory. Once the limit, or the end
    // of the device's memory, is near, free memory is used before memory is given back.
    const std::size_t wanted = segment_size(size);
    bool is_short = wanted > limit_.room(lock, wanted, statistics_.reserved()).expected;
    if (is_short)
        if (Block *block = take_apart(lock, pool, stream, size))
            return block;
    reclaimer_.collect_garbage(lock, size, stream);
    if (settings_.rejects_beyond_limit && pool.library == nullptr &&
        !limit_.allows(lock, wanted, statistics_.reserved())) {
        ++statistics_.num_oom_rejections;
        throw lack(size, stream, true);
    }
    reclaimer_.give_back_idle(lock, wanted, stream, is_short);
    std::uint64_t handed_out = 0;
    for (int retries = 0;; ++retries) {
        if (Block *block = take(pool, stream, size))
            return block;
        if (Block *block = grow_and_take(lock, pool, stream, size, noted))
            return block;
        if (!std::exchange(is_short, true)) { // the device has less than the device has said
            if (Block *block = take_apart(lock, pool, stream, size))
                return block;
            reclaimer_.give_back_idle(lock, wanted, stream, true);
            if (Block *block = grow_and_take(lock, pool, stream, size, noted))
                return block;
        }
        // While the lock was given back, other threads may have taken the memory that became free. If so, the loop goes
        // on.
        const bool others_were_quicker = native_.handed_out() != handed_out;
        if (retries > 0 && (retries == most_retries || !others_were_quicker))
            break;
        if (retries == 0)
            ++statistics_.num_alloc_retries;
        settle(lock, true);
        if (Block *block = take(pool, stream, size))
            return block;
        handed_out = native_.handed_out();
        give_back_everything(lock, &stream);
    }
    live_.reserve_one();
    return pools_.take_on_oom(stream, size);
}

// Takes free memory that lies apart; null if there is not enough.
Block *DeviceLedger::take_apart(Lock &lock, Pool &pool, Stream stream, std::size_t size) {
    if (Heap *heap = native_.heap_with_too_many_windows(pool, stream, size)) {
        reclaimer_.unmap_idle_windows(lock, *heap);
        if (Block *block = take(pool, stream, size)) // other threads may have freed memory meanwhile
            return block;
    }
    check_awake(pool); // the lock was given back meanwhile
    return native_.make_window(pool, stream, size) ? take(pool, stream, size) : nullptr;
}

// Takes a block from a new segment; null if there is no memory for one.
Block *DeviceLedger::grow_and_take(Lock &lock, Pool &pool, Stream stream, std::size_t size, StackId noted) {
    check_awake(pool);
    if (pool.library != nullptr)
        return external_.grow(lock, pool, stream, size, noted) ? take(pool, stream, size) : nullptr;
    const Room room = limit_.room(lock, segment_size(size), statistics_.reserved());
    const int status = native_.grow(pool, stream, size, room, noted);
    if (status == out_of_memory)
        limit_.doubt();
    if (status != success && status != out_of_memory)
        throw DriverError(status, "taking memory from the driver");
    return status == success ? take(pool, stream, size) : nullptr;
}

Block *DeviceLedger::take_from_source(Lock &lock, const std::shared_ptr<ExternalSource> &source, std::size_t size,
                                      Stream stream) {
    if (Block *block = external_.allocate(lock, source, size, stream))
        return block;
    ++statistics_.num_alloc_retries;
    settle(lock, true);
    reclaimer_.give_back_everything(lock, &stream);
    return external_.allocate(lock, source, size, stream);
}

void DeviceLedger::give_back_everything(Lock &lock, const Stream *current, bool keep_spare) {
    if (!captures_.any()) // as torch counts, even if there is nothing to give back
        ++statistics_.num_sync_all_streams;
    reclaimer_.give_back_everything(lock, current, keep_spare);
}

void DeviceLedger::fail(Lock &lock, std::size_t size, Stream stream, StackId noted, const Scope *scope) {
    ++statistics_.num_ooms;
    lock.leave_interpreter();
    const OutOfMemory facts = lack(size, stream, false);
    history_.record(Action::oom, facts.free, size, stream, noted, scope);
    lock.unlock();
    throw facts;
}

// The facts about memory that is missing.
OutOfMemory DeviceLedger::lack(std::size_t size, Stream stream, bool rejected) {
    native_.merge_recent();
    OutOfMemory facts;
    facts.rejected = rejected;
    facts.device = device_;
    facts.requested = size;
    facts.stream = stream;
    facts.limited = limit_.is_set();
    facts.allocated = statistics_.allocated();
    facts.reserved = statistics_.reserved();
    driver_.memory_info(device_, &facts.free, &facts.total);
    facts.limit = limit_.bytes_of(facts.total);
    for (const auto &heap : pools_.common().heaps)
        heap->free.each([&](const Block *block) { facts.largest_free = std::max(facts.largest_free, block->size); });
    return facts;
}

// The capture that a stream takes part in. Called without the lock: the call of the driver takes long while the stream
// captures.
CaptureId DeviceLedger::capture_of(Stream stream) {
    {
        const Lock lock(mutex_);
        if (const CaptureId known = captures_.known_of(stream))
            return known;
    }
    CaptureId capture = 0;
    if (driver_.capture_of(device_, stream, &capture) != success || capture == 0)
        return 0;
    const Lock lock(mutex_);
    captures_.add_stream(capture, stream);
    return captures_.whole_of(capture);
}

// Completes the frees that wait for streams or for replays of released graphs. Waits for all of them if `wait`.
void DeviceLedger::settle(Lock &lock, bool wait) {
    if (wait ? checkpoint_.wait(lock) : checkpoint_.is_recorded() && !captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
    waits_.settle(lock, wait);
    if (pools_.has_idle())
        reclaimer_.give_back_idle_pools(lock);
}

// Before a pool that graphs use loses its last user: the memory goes back when the device has done the work so far.
void DeviceLedger::note_replays(Pool &pool) {
    if (pool.captured && pool.uses == 1 && !pool.heaps.empty())
        pool.released = checkpoint_.request();
}

// Gives back what graphs have kept, because the device has come to a requested point.
void DeviceLedger::settle_replays(Lock &lock) {
    holds_.end_passed(lock);
    if (pools_.has_unused())
        reclaimer_.give_back_idle_pools(lock);
}

// Freeing

bool DeviceLedger::free(Address address) noexcept {
    if (shutdown_.is_abandoned())
        return true;
    const StackId noted = stack(Stacks::all);
    const NotedCall call(records_stacks(), noted);
    const StackId caller = is_observed() ? caller_stack(noted) : 0;
    Lock lock(mutex_);
    Block *block = live_.find_allocated(address);
    if (block == nullptr)
        return false;
    live_.count_free(block);
    if (MemoryObserver *const observer = observer_.load(std::memory_order_relaxed))
        observer->memory_freed(address, caller);
    if (captures_.any() && !shutdown_.is_closed())
        captures_.keep(block);
    holds_.free(lock, block);
    if (pools_.has_idle())
        reclaimer_.give_back_idle_pools(lock);
    return true;
}

std::size_t DeviceLedger::size_of(Address address) {
    const Lock lock(mutex_);
    const Block *block = live_.find_allocated(address);
    return block == nullptr ? 0 : block->size;
}

std::optional<Stream> DeviceLedger::stream_of(Address address) {
    const Lock lock(mutex_);
    const Block *block = live_.find_allocated(address);
    Stream handle = 0;
    if (block == nullptr || stream_is_gone(block) || handle_of(block->stream, &handle) != success)
        return std::nullopt;
    return handle;
}

StackId DeviceLedger::stack_of(Address address) {
    const Lock lock(mutex_);
    const Block *block = live_.find(address);
    return block == nullptr ? 0 : block->stack;
}

bool DeviceLedger::can_move(Address address) {
    const Lock lock(mutex_);
    const Block *block = live_.find_allocated(address);
    return block != nullptr && block->holds == 0 &&
           (block->pool == nullptr || (block->pool == &pools_.common() && block->pool->rest == Pool::Rest::awake));
}

std::optional<FoundBlock> DeviceLedger::block_at(Address address) {
    const Lock lock(mutex_);
    return search_.around(address);
}

// Sleeping

Sleeper::Refusal DeviceLedger::sleep(PoolId id, bool keep, const std::vector<Address> &shared) {
    Lock lock(mutex_);
    const Sleeper::Refusal refusal = sleeper_.sleep(lock, id, keep, shared);
    if (refusal == Sleeper::Refusal::none && id == common_pool) // pools that nobody uses have free memory only
        reclaimer_.give_back_everything(lock, nullptr);
    return refusal;
}

bool DeviceLedger::wake(PoolId id, Sleeper::Lack *lack, Sleeper::Refusal *refusal) {
    Lock lock(mutex_);
    return sleeper_.wake(lock, id, lack, refusal);
}

bool DeviceLedger::is_asleep(PoolId id) {
    const Lock lock(mutex_);
    return sleeper_.is_asleep(id);
}

// The number of the pool that is asleep and whose block contains `address`. Nothing if there is none.
std::optional<PoolId> DeviceLedger::sleeping_pool(Address address) {
    const Lock lock(mutex_);
    const Pool *pool = search_.pool_around(address);
    return pool == nullptr || pool->rest == Pool::Rest::awake ? std::nullopt : std::optional(pool->id);
}

// Memory in several processes

std::optional<Sharing> DeviceLedger::sharing_of(Address address) {
    Lock lock(mutex_);
    const Block *block = live_.find_allocated(address);
    if (block == nullptr)
        return std::nullopt;
    if (block->pool != nullptr)
        check_awake(*block->pool);
    Sharing found;
    found.block = {address, block->size};
    if (!stream_is_gone(block))
        found.streams.push_back(block->stream);
    if (block->uses != nullptr)
        for (const Wait &use : *block->uses)
            if (!use.is_gone())
                found.streams.push_back(use.stream);
    const Segment *segment = block->segment;
    if (segment != nullptr && segment->expandable) {
        const auto &mappings = segment->mappings;
        for (auto piece = std::prev(mappings.upper_bound(address));
             piece != mappings.end() && piece->first < address + block->size; ++piece) {
            found.pieces.emplace_back(piece->first, piece->second.size);
            found.youngest = std::max(found.youngest, piece->second.number);
        }
    } else if (segment != nullptr && segment->heap->pool->library == nullptr) {
        found.segment = {segment->address, segment->size};
    } else { // a library may have cut the memory out of a larger allocation
        lock.leave_interpreter();
        Range whole;
        if (driver_.allocation_of(device_, address, &whole.first, &whole.second) == success)
            found.segment = whole;
    }
    return found;
}

int DeviceLedger::export_piece(Address address) {
    Lock lock(mutex_);
    lock.leave_interpreter();
    Physical physical = 0;
    const Heap *heap = nullptr;
    bool known = false;
    native_.each_segment([&](const Segment *segment) {
        const auto piece = segment->mappings.find(address);
        if (piece == segment->mappings.end())
            return;
        physical = piece->second.physical;
        heap = segment->heap;
        known = true;
    });
    if (heap != nullptr)
        check_awake(*heap->pool);
    int descriptor = -1;
    const int status = known ? driver_.export_physical(device_, physical, &descriptor) : invalid_value;
    if (status != success)
        throw DriverError(status, "exporting memory to another process");
    return descriptor;
}

Address DeviceLedger::import_pieces(const std::vector<ImportedMemory::Piece> &pieces) {
    Lock lock(mutex_);
    return imported_.open(lock, pieces);
}

bool DeviceLedger::release_imported(Address address) {
    if (shutdown_.is_abandoned() || shutdown_.is_closed())
        return true;
    Lock lock(mutex_);
    std::size_t size = 0;
    if (!imported_.close(lock, address, &size))
        return false;
    if (MemoryObserver *const observer = observer_.load(std::memory_order_relaxed))
        observer->memory_unmapped(address, size, device_, false);
    return true;
}

// Streams

bool DeviceLedger::record_stream(Address address, Stream stream) {
    const Lock lock(mutex_);
    Block *block = live_.find_allocated(address);
    if (block == nullptr)
        return false;
    waits_.record_use(block, stream);
    return true;
}

void DeviceLedger::stream_created(Stream stream) {
    const Lock lock(mutex_);
    streams_.announce(stream);
}

void DeviceLedger::stream_about_to_be_destroyed(Stream stream) {
    const auto end = std::make_shared<Work>(); // takes the host memory first, so that nothing can fail later
    std::list<Wait> wait;
    wait.emplace_back(stream, nullptr, end);
    if (shutdown_.is_closed()) // a thread that the end of the interpreter has stopped never unpins its streams
        return;
    Lock lock(mutex_);
    if (!streams_.begin_end(lock, stream))
        return;
    if (const StreamLife *life = lives_.find(stream); life != nullptr && life->is_used()) {
        end->event = progress_.record_last(lock, stream);
        end->gone = true;
        native_.end_stream(stream, end);
        waits_.add(wait);
    }
    streams_.forget(stream);
}

bool DeviceLedger::is_capturing() {
    if (shutdown_.is_closed())
        return true; // a thread that the end of the interpreter has stopped may have pinned a stream for ever
    Lock lock(mutex_);
    // A question about the default stream would make a context on a device that the program does not use.
    if (!live_.ever_used() && !streams_.any([](Stream) { return true; }))
        return false;
    return progress_.is_capturing(lock);
}

void DeviceLedger::wait_for_work() {
    if (shutdown_.is_closed())
        return;
    Lock lock(mutex_);
    lock.leave_interpreter();
    if (live_.ever_used() || streams_.any([](Stream) { return true; }))
        progress_.synchronize_device(lock, nullptr);
}

// Captures

void DeviceLedger::prepare_capture() {
    Lock lock(mutex_);
    if (checkpoint_.is_recorded() && !captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
}

void DeviceLedger::begin_capture(PoolId id, CaptureId capture) {
    const Lock lock(mutex_);
    routes_.reserve_one(); // the capture and its route are made together, or neither
    captures_.reserve_one();
    Pool &pool = pools_.open_for_capture(id);
    captures_.begin(capture);
    routes_.begin_capture(pool, capture);
}

void DeviceLedger::end_capture(CaptureId capture) noexcept {
    Lock lock(mutex_);
    Block *kept = nullptr;
    if (!captures_.end(capture, &kept))
        return;
    if (Pool *pool = routes_.end_capture(capture))
        pools_.note_unused(*pool);
    holds_.unhold_all(lock, kept);
    // Released graphs and unused pools have kept their memory during the capture, because the record of an event or a
    // wait would have ended the capture.
    if (!captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
    if (pools_.has_unused()) {
        try {
            reclaimer_.give_back_unused_pools(lock);
        } catch (const std::exception &) { // a later call offers the memory to the driver again
        }
    }
}

void DeviceLedger::begin_part(CaptureId capture, CaptureId part) {
    const Lock lock(mutex_);
    captures_.begin_part(capture, part);
}

void DeviceLedger::end_part(CaptureId part) noexcept {
    const Lock lock(mutex_);
    captures_.end_part(part);
}

bool DeviceLedger::has_capture(CaptureId capture) {
    const Lock lock(mutex_);
    return captures_.has(capture);
}

std::vector<Address> DeviceLedger::hold(const std::vector<Address> &addresses, CaptureId capture) {
    const Lock lock(mutex_);
    return holds_.hold(addresses, capture);
}

void DeviceLedger::release_holds(const std::vector<Address> &held, bool replayed) {
    Lock lock(mutex_);
    std::list<GraphHolds::Hold> own = holds_.own(held);
    release_own(lock, own, replayed);
    if (!captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
}

void DeviceLedger::release_graph(PoolId id, const std::vector<Address> &held, bool replayed) {
    Lock lock(mutex_);
    std::list<GraphHolds::Hold> own = holds_.own(held);
    note_replays(pools_.at(id));
    const bool last = pools_.release(id);
    release_own(lock, own, replayed);
    if (!captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
    else if (last)
        reclaimer_.give_back_idle_pools(lock);
}

void DeviceLedger::release_own(Lock &lock, std::list<GraphHolds::Hold> &own, bool replayed) {
    if (!replayed)
        holds_.release(lock, own);
    else if (!own.empty())
        holds_.release_later(own, checkpoint_.request());
}

// Pools

void DeviceLedger::create_pool(PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
    const Lock lock(mutex_);
    pools_.open(id, std::move(library), split, use_on_oom).owned = true;
}

void DeviceLedger::release_pool(PoolId id) {
    Lock lock(mutex_);
    Pool &pool = pools_.at(id);
    note_replays(pool);
    const bool last = pools_.release(id);
    pool.owned = false;
    if (!last)
        return;
    if (!captures_.any() && checkpoint_.advance(lock))
        settle_replays(lock);
    reclaimer_.give_back_unused_pools(lock);
}

int DeviceLedger::pool_uses(PoolId id) {
    const Lock lock(mutex_);
    return pools_.at(id).uses;
}

void DeviceLedger::begin_pool(PoolId id, std::uint64_t use) {
    const Lock lock(mutex_);
    routes_.begin(pools_.at(id), use);
}

void DeviceLedger::end_pool(PoolId id, std::uint64_t use) noexcept {
    Lock lock(mutex_);
    Pool *pool = routes_.end(id, use);
    if (pool == nullptr || pool->uses != 0)
        return;
    pools_.note_unused(*pool);
    reclaimer_.give_back_idle_pools(lock);
}

// Reserved memory

void DeviceLedger::empty_cache(bool keep_spare) {
    Lock lock(mutex_);
    settle(lock, true);
    give_back_everything(lock, nullptr, keep_spare);
    imported_.retry();
}

Address DeviceLedger::allocate_segment(std::size_t size) {
    Lock lock(mutex_);
    return reported_.allocate(lock, size);
}

void DeviceLedger::free_segment(Address address) noexcept {
    if (shutdown_.is_abandoned() || shutdown_.is_closed())
        return;
    Lock lock(mutex_);
    lock.leave_interpreter();
    reported_.free(address);
}

void DeviceLedger::change_settings(const Settings &settings) {
    const Lock lock(mutex_);
    settings_ = settings;
    const bool unlimited = settings.max_split_size == std::numeric_limits<std::size_t>::max();
    statistics_.max_split_size = unlimited ? -1 : static_cast<std::int64_t>(settings.max_split_size);
}

void DeviceLedger::set_memory_fraction(double fraction) {
    const Lock lock(mutex_);
    limit_.set_fraction(fraction);
}

void DeviceLedger::set_padding(std::size_t padding) {
    const Lock lock(mutex_);
    native_.set_padding(padding);
}

void DeviceLedger::set_poison(int value) {
    const Lock lock(mutex_);
    poison_.use(value);
}

double DeviceLedger::memory_fraction() {
    const Lock lock(mutex_);
    return limit_.fraction();
}

// Statistics

Statistics DeviceLedger::statistics() {
    const Lock lock(mutex_);
    native_.merge_recent();
    return statistics_;
}

DeviceLedger::Bytes DeviceLedger::bytes() {
    const Lock lock(mutex_);
    return {statistics_.allocated_bytes.all, statistics_.reserved_bytes.all};
}

std::vector<Counter> DeviceLedger::scope_bytes() {
    const Lock lock(mutex_);
    return scopes_.all();
}

std::map<PoolId, PooledCounter> DeviceLedger::pool_bytes() {
    const Lock lock(mutex_);
    return pools_.reserved();
}

void DeviceLedger::reset_peaks() {
    const Lock lock(mutex_);
    native_.merge_recent();
    statistics_.reset_peaks();
    scopes_.reset_peaks();
    pools_.reset_peaks();
}

void DeviceLedger::reset_accumulated() {
    const Lock lock(mutex_);
    native_.merge_recent();
    statistics_.reset_accumulated();
    scopes_.reset_accumulated();
    pools_.reset_accumulated();
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

void DeviceLedger::observe(MemoryObserver *observer) {
    const Lock lock(mutex_);
    observer_.store(observer, std::memory_order_relaxed);
    history_.observe(observer, device_);
    if (observer == nullptr)
        return;
    live_.each([&](const Block *block) {
        if (block->state == Block::State::allocated)
            observer->memory_allocated(block->address, block->requested, device_, block->stream, block->stack);
    });
}

// History and snapshots

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

void DeviceLedger::keep_stacks(bool wanted) {
    const Lock lock(mutex_);
    history_.keep_stacks(wanted);
}

void DeviceLedger::set_metadata(Metadata metadata) {
    const Lock lock(mutex_);
    history_.set_metadata(std::move(metadata));
}

StackId DeviceLedger::stack(Stacks wanted) const {
    if (history_.stacks() < wanted)
        return 0;
    return caller_stack(0);
}

// The stack `noted`, or the Python stack of the caller if there is none. Called without the lock.
StackId DeviceLedger::caller_stack(StackId noted) const { return noted != 0 ? noted : CallerStack::note(); }

std::vector<Occurrence> DeviceLedger::events() {
    const Lock lock(mutex_);
    return history_.events();
}

SegmentChanges::Bytes DeviceLedger::take_segment_changes() {
    const Lock lock(mutex_);
    return history_.take_segment_changes();
}

std::vector<SegmentView> DeviceLedger::snapshot(const PoolId *only) {
    const Lock lock(mutex_);
    native_.merge_recent();
    std::vector<SegmentView> segments = view_segments(native_, live_, reported_, only);
    history_.record(Action::snapshot, 0, active_bytes(segments), 0, 0);
    return segments;
}

} // namespace tcuda
