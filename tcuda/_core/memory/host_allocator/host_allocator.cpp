#include "memory/host_allocator/host_allocator.hpp"

#include <algorithm>
#include <chrono>

#include "driver/status.hpp"
#include "memory/host_allocator/host_pages.hpp"
#include "memory/host_allocator/host_sizes.hpp"
#include "memory/host_allocator/node_preference.hpp"
#include "memory/records/noted_call.hpp"

namespace tcuda {
namespace {

// An allocation of a small block asks about the freed blocks if there are so many, before the allocation takes memory
// that the program has not touched yet. So a loop uses a few blocks, which stay in the caches of the processor, and one
// question is for many allocations.
constexpr std::size_t doubts_of_a_question = 32;

// The microseconds since the object was made.
class Stopwatch {
public:
    std::int64_t microseconds() const {
        return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin_).count();
    }

private:
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace

HostAllocator::~HostAllocator() {
    if (abandoned_)
        static_cast<void>(thread_.release()); // threads of the parent may be in its condition variables
    if (abandoned_ || closed_)
        return;
    thread_->stop();
    Absence absence;
    absence.leave(); // the driver may wait for the device
    waits_.destroy_events();
    heap_.each_segment([&](const HostSegment &segment) { give_back(segment); });
}

HostBlock *HostAllocator::allocate(std::size_t size) {
    const StackId noted = stack(Stacks::live);
    const NotedCall call(history_.stacks() != Stacks::none, noted);
    Lock lock(mutex_);
    if (size > largest_host_request)
        fail(size, noted, out_of_memory);
    // A detector of races watches pages, so a block has pages of its own meanwhile.
    const std::size_t alignment = observer_ != nullptr ? host_page : host_unit;
    const std::size_t wanted = rounded_to(host_block_size(size), alignment);
    if (is_small_host_size(wanted) && waits_.doubts() >= doubts_of_a_question && !heap_.has_kept(wanted) &&
        !waits_.is_in_capture() && !thread_->is_working() && !closed_.load(std::memory_order_relaxed))
        waits_.settle(lock, false, 0);
    HostBlock *block = heap_.take(wanted, alignment);
    if (block == nullptr && (waits_.any() || thread_->is_working()) && !closed_.load(std::memory_order_relaxed)) {
        settle(lock, wanted, noted); // new memory would take longer
        block = heap_.take(wanted, alignment);
    }
    if (block == nullptr) {
        if (is_short(wanted))
            ask_host(lock); // others may have given memory back
        block = heap_.cut(wanted, alignment, !is_short(wanted));
    }
    while (block == nullptr) { // another thread may take the new memory first
        const int status = grow(lock, wanted, noted);
        block = heap_.cut(wanted, alignment, true);
        if (block == nullptr && status != success)
            fail(size, noted, status);
    }
    block->requested = size;
    block->stack = noted;
    statistics_.active_requests.increase(1);
    statistics_.active_bytes.increase(static_cast<std::int64_t>(block->size));
    trackers_.count_allocation(static_cast<std::int64_t>(block->size));
    history_.record(Action::alloc, block->address, size, 0, noted);
    most_active_ = std::max(most_active_, statistics_.active_bytes.current);
    if (observer_ != nullptr) {
        observer_->memory_unmapped(block->address, block->size, 0, false);
        tell_allocated(*block);
    }
    return block;
}

void HostAllocator::free(HostBlock *block) noexcept {
    if (abandoned_.load(std::memory_order_relaxed))
        return;
    const StackId noted = stack(Stacks::all);
    const NotedCall call(history_.stacks() != Stacks::none, noted);
    const Lock lock(mutex_);
    statistics_.active_requests.decrease(1);
    statistics_.active_bytes.decrease(static_cast<std::int64_t>(block->size));
    trackers_.count_free(static_cast<std::int64_t>(block->size));
    history_.record(Action::free_requested, block->address, block->requested, 0, block->stack);
    if (observer_ != nullptr)
        observer_->host_memory_freed(block->address);
    if (block->holds != 0)
        block->state = HostBlock::State::held;
    else
        doubt(block);
}

// Tells the observer of a block that has pages of its own.
void HostAllocator::tell_allocated(const HostBlock &block) noexcept {
    if (block.address % host_page == 0 && block.size % host_page == 0)
        observer_->host_memory_allocated(block.address, block.requested);
}

// The block comes back when no work uses the block any more.
void HostAllocator::doubt(HostBlock *block) noexcept {
    waits_.free(block);
    thread_->wake();
}

std::pair<Address, std::size_t> HostAllocator::allocation_at(Address address) {
    const Lock lock(mutex_);
    const HostBlock *const block = heap_.find(address);
    if (block == nullptr || block->state != HostBlock::State::allocated)
        return {0, 0};
    return {block->address, block->size};
}

// Takes the memory of a segment. Called without the lock.
int HostAllocator::obtain(const HostSettings &settings, HostSegment &segment) {
    const NodePreference preference(driver_.host_node());
    if (!segment.registered)
        return driver_.host_allocate(segment.size, &segment.address);
    segment.address = map_host_pages(segment.size, settings.threads);
    if (segment.address == 0)
        return out_of_memory;
    const int status = driver_.host_register(segment.address, segment.size);
    if (status != success)
        unmap_host_pages(segment.address, segment.size);
    return status;
}

// Gives the memory of a segment back. Called without the lock.
int HostAllocator::give_back(const HostSegment &segment) {
    if (!segment.registered)
        return driver_.host_free(segment.address, segment.size);
    const int status = driver_.host_unregister(segment.address);
    if (status == success)
        unmap_host_pages(segment.address, segment.size);
    return status;
}

// Asks about the freed blocks, before an allocation of `size` bytes takes new memory. Takes the reserve if allocations
// of small blocks ask too often.
void HostAllocator::settle(Lock &lock, std::size_t size, StackId noted) {
    const SettlingRest rest(*thread_, lock); // the thread may have the block
    const std::size_t freed = waits_.settle(lock, false);
    if (freed == 0 || reserve_ != 0 || !is_small_host_size(size) || !waits_.asks_for_all())
        return;
    questions_.asked(freed);
    if (!questions_.is_too_high() || waits_.is_in_capture())
        return;
    questions_.reset();
    HostSegment segment;
    segment.stack = noted;
    segment.small = segment.reserve = true;
    segment.size = small_host_reserve;
    segment.registered = settings_.registers_pages;
    reserve_ = static_cast<std::int64_t>(segment.size); // before the lock is given back, so that there is one reserve
    lock.leave_interpreter();
    bool taken = false;
    try {
        taken = add_segment(lock, segment) == success;
    } catch (const std::bad_alloc &) {
    }
    if (!taken) // the allocations go on as before
        reserve_ = 0;
}

// Records the failure, and throws.
void HostAllocator::fail(std::size_t size, StackId noted, int status) {
    history_.record(Action::oom, free_host_pages(), size, 0, noted);
    throw HostMemoryError(status);
}

// Takes a segment for a block of `size` bytes. Returns the status of the driver's call.
int HostAllocator::grow(Lock &lock, std::size_t size, StackId noted) {
    HostSegment segment;
    segment.stack = noted;
    segment.small = is_small_host_size(size);
    segment.size = segment.small ? small_host_segment : rounded_to(size, host_page);
    segment.registered = settings_.registers_pages;
    const bool is_first = segment.small && !has_first_segment_ && settings_.reserved_segment > segment.size;
    if (is_first)
        segment.size = settings_.reserved_segment;
    ask_host(lock);
    const std::size_t least = segment.size;
    // The blocks of a program may become larger and larger. So a program that has more memory than it ever used at a
    // time gets a segment that larger blocks fit into, too.
    if (!segment.small && excess(least) > 0)
        segment.size = power_of_two_from(least);
    if (is_short(segment.size)) {
        segment.size = least;
        make_room(lock, least);
    }
    int status = add_segment(lock, segment);
    if (status != success) {
        settle_all(lock);
        release_idle_segments(lock);
        segment.size = least;
        status = add_segment(lock, segment);
    }
    has_first_segment_ = has_first_segment_ || (is_first && status == success);
    return status;
}

// Takes the memory of a segment, and adds the segment to the heap. Returns the status of the driver's call.
int HostAllocator::add_segment(Lock &lock, HostSegment segment) {
    const HostSettings settings = settings_;
    const Stopwatch watch;
    int status;
    {
        const Unlocked unlocked(lock);
        status = obtain(settings, segment);
    }
    const std::size_t held = static_cast<std::size_t>(statistics_.allocated_bytes.current) + segment.size;
    if (status == out_of_memory)
        limit_.refused(held);
    if (status != success)
        return status;
    limit_.granted(held);
    try {
        heap_.add(segment);
    } catch (...) {
        const Unlocked unlocked(lock);
        give_back(segment);
        throw;
    }
    statistics_.host_alloc_time.add(watch.microseconds());
    ++statistics_.num_host_alloc;
    statistics_.allocations.increase(1);
    statistics_.allocated_bytes.increase(static_cast<std::int64_t>(segment.size));
    history_.record_segment(Action::segment_alloc, segment.address, segment.size, 0, segment.stack);
    return success;
}

// The bytes by which a new segment would exceed the bound: what the program ever had at a time, a sixteenth or a
// segment of small blocks more, and the reserve. Negative if the segment fits. Memory that work may still use does not
// count: the program may need that much memory at a time.
std::int64_t HostAllocator::excess(std::size_t wanted) const {
    const auto size = static_cast<std::int64_t>(wanted);
    const std::int64_t most = std::max(most_active_, statistics_.active_bytes.current + size);
    const std::int64_t bound = most + std::max<std::int64_t>(most / 16, small_host_segment) + reserve_;
    return statistics_.active_bytes.current + static_cast<std::int64_t>(heap_.free_bytes()) + size - bound;
}

// Asks the host how much memory is left.
void HostAllocator::ask_host(Lock &lock) {
    lock.leave_interpreter();
    std::size_t room;
    {
        const Unlocked unlocked(lock);
        room = driver_.host_room();
    }
    limit_.found(static_cast<std::size_t>(statistics_.allocated_bytes.current), room);
}

bool HostAllocator::may_hold(std::size_t size) const {
    return limit_.allows(size, static_cast<std::size_t>(statistics_.allocated_bytes.current));
}

// Whether the limit of the host is near: as far as is known, the host has no room for `wanted` bytes and a quarter of
// what the program ever had at a time. From then on, no whole segment is cut, so that each can be given back. Otherwise
// the free memory would lie in pieces when the limit is reached.
bool HostAllocator::is_short(std::size_t wanted) const {
    return !may_hold(wanted + static_cast<std::size_t>(most_active_) / 4);
}

// Gives unused memory back until the host has room for `wanted` bytes. Waits for the devices if the memory that no work
// uses is not enough: a system without memory may end the process and not refuse the call of the driver.
void HostAllocator::make_room(Lock &lock, std::size_t wanted) {
    release_idle_until(lock, wanted);
    if (may_hold(wanted) || !waits_.any() || waits_.is_in_capture())
        return;
    settle_all(lock);
    release_idle_until(lock, wanted);
}

void HostAllocator::release_idle_until(Lock &lock, std::size_t wanted) {
    // While a stream captures, the driver may refuse to free memory.
    while (!may_hold(wanted) && !waits_.is_in_capture()) {
        HostBlock *const idle = heap_.idle_segment();
        if (idle == nullptr || !release_segment(lock, idle))
            break;
    }
}

// Gives a free block, which is a whole segment, back to the driver. False if the driver has refused that.
bool HostAllocator::release_segment(Lock &lock, HostBlock *block) {
    HostHeap::Withdrawn withdrawn = heap_.withdraw(block);
    const HostSegment segment = *block->segment;
    int status;
    const Stopwatch watch;
    if (observer_ != nullptr)
        observer_->memory_unmapped(segment.address, segment.size, 0, false);
    {
        const Unlocked unlocked(lock);
        status = give_back(segment);
    }
    if (status != success) {
        block = heap_.restore(std::move(withdrawn));
        block->state = HostBlock::State::refused;
        refused_.add(block);
        return false;
    }
    statistics_.host_free_time.add(watch.microseconds());
    ++statistics_.num_host_free;
    statistics_.allocations.decrease(1);
    statistics_.allocated_bytes.decrease(static_cast<std::int64_t>(segment.size));
    if (segment.reserve)
        reserve_ = 0;
    history_.record_segment(Action::segment_free, segment.address, segment.size, 0, segment.stack);
    return true;
}

void HostAllocator::release_idle_segments(Lock &lock) {
    HostBlockList again;
    again.swap(refused_);
    while (!again.empty())
        heap_.give(again.take());
    for (HostBlock *idle = heap_.idle_segment(); idle != nullptr; idle = heap_.idle_segment())
        release_segment(lock, idle);
}

// Waits until no work uses any freed block.
void HostAllocator::settle_all(Lock &lock) {
    const SettlingRest rest(*thread_, lock);
    waits_.settle(lock, true);
    if (waits_.any()) // a graph has released memory after the driver was asked
        waits_.settle(lock, true);
}

void HostAllocator::empty_cache() {
    if (abandoned_ || closed_)
        return;
    Lock lock(mutex_);
    lock.leave_interpreter();
    settle_all(lock);
    release_idle_segments(lock);
    most_active_ = statistics_.active_bytes.current;
    limit_.forget_refusals();
    questions_.reset();
}

std::vector<Address> HostAllocator::hold(const std::vector<Address> &addresses) {
    std::vector<Address> held;
    held.reserve(addresses.size());
    const Lock lock(mutex_);
    for (const Address address : addresses) {
        HostBlock *const block = heap_.find(address);
        if (block == nullptr || block->requested == 0) // a free block
            continue;
        ++block->holds;
        held.push_back(address);
    }
    return held;
}

void HostAllocator::release(const std::vector<Address> &held) noexcept {
    if (abandoned_.load(std::memory_order_relaxed))
        return;
    const Lock lock(mutex_);
    for (const Address address : held) {
        HostBlock *const block = heap_.find(address);
        if (block == nullptr || block->holds == 0)
            continue;
        if (--block->holds != 0)
            continue;
        if (block->state == HostBlock::State::held)
            doubt(block);
        else
            block->released = block->state == HostBlock::State::asked;
    }
}

void HostAllocator::observe(MemoryObserver *observer) {
    const Lock lock(mutex_);
    observer_ = observer;
    if (observer_ != nullptr)
        heap_.each_block([this](const HostBlock &block) {
            if (block.state == HostBlock::State::allocated)
                tell_allocated(block);
        });
}

void HostAllocator::change_settings(const HostSettings &settings) {
    {
        const Lock lock(mutex_);
        settings_ = settings;
    }
    if (!settings.background_thread)
        thread_->stop();
    else if (!abandoned_ && !closed_)
        thread_->start();
}

void HostAllocator::begin_rest() {
    Lock lock(mutex_);
    thread_->begin_rest(lock);
}

void HostAllocator::end_rest() {
    const Lock lock(mutex_);
    thread_->end_rest();
}

void HostAllocator::close() {
    closed_.store(true, std::memory_order_relaxed);
    if (!abandoned_)
        thread_->stop();
}

HostStatistics HostAllocator::statistics() {
    const Lock lock(mutex_);
    return statistics_;
}

void HostAllocator::reset_peaks() {
    const Lock lock(mutex_);
    statistics_.reset_peaks();
}

void HostAllocator::reset_accumulated() {
    const Lock lock(mutex_);
    statistics_.reset_accumulated();
}

void HostAllocator::attach(Tracker *tracker) {
    const Lock lock(mutex_);
    trackers_.attach(tracker);
}

bool HostAllocator::detach(Tracker *tracker) {
    const Lock lock(mutex_);
    return trackers_.detach(tracker);
}

Tracker HostAllocator::read(const Tracker &tracker) {
    const Lock lock(mutex_);
    return tracker;
}

void HostAllocator::record_history(Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear) {
    const Lock lock(mutex_);
    if (clear)
        history_.clear();
    history_.enable(stacks, capacity, skipped);
}

bool HostAllocator::records_history() {
    const Lock lock(mutex_);
    return history_.recording();
}

void HostAllocator::stop_history() {
    const Lock lock(mutex_);
    history_.disable();
}

void HostAllocator::keep_stacks(bool wanted) {
    const Lock lock(mutex_);
    history_.keep_stacks(wanted);
}

void HostAllocator::set_metadata(Metadata metadata) {
    const Lock lock(mutex_);
    history_.set_metadata(std::move(metadata));
}

std::vector<Occurrence> HostAllocator::events() {
    const Lock lock(mutex_);
    return history_.events();
}

SegmentChanges::Bytes HostAllocator::take_segment_changes() {
    const Lock lock(mutex_);
    return history_.take_segment_changes();
}

std::vector<HostSegmentView> HostAllocator::snapshot() {
    const Lock lock(mutex_);
    std::vector<HostSegmentView> views;
    std::size_t active = 0;
    heap_.join_kept();
    heap_.each_segment([&](const HostSegment &segment) {
        views.push_back({segment.address, segment.size, segment.small, segment.stack, {}});
    });
    // Segments and blocks are both in the order of their addresses.
    auto segment = views.begin();
    heap_.each_block([&](const HostBlock &block) {
        while (block.address - segment->address >= segment->size)
            ++segment;
        segment->blocks.push_back({block.address, block.size, block.requested, block.state, block.stack});
        if (block.requested != 0)
            active += block.size;
    });
    history_.record(Action::snapshot, 0, active, 0, 0);
    return views;
}

} // namespace tcuda
