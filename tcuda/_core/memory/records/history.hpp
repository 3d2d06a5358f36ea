// The history of a device's memory: a ring of the newest events.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memory/records/memory_observer.hpp"
#include "memory/records/noted_call.hpp"
#include "memory/records/occurrence.hpp"
#include "memory/records/segment_changes.hpp"

namespace tcuda {

// The stacks that the history notes. _record_memory_history(context=...) has the same choices.
//   none         no stacks
//   live         the stacks of allocations, for live memory only
//   allocations  the stacks of allocations, in the events too
//   all          the stacks of all calls
enum class Stacks : std::uint8_t { none, live, allocations, all };

// The lock of the device's ledger guards the events. `stacks()` needs no lock.
class History {
public:
    // Records up to `capacity` events from now on. A bit of `skipped` leaves out the events of the action of that
    // number.
    void enable(Stacks stacks, std::size_t capacity, std::uint32_t skipped) {
        asked_ = stacks;
        choose_stacks();
        if (capacity != capacity_) {
            const auto kept = events();
            const std::size_t count = kept.size() < capacity ? kept.size() : capacity;
            ring_.assign(kept.end() - static_cast<std::ptrdiff_t>(count), kept.end());
            oldest_ = 0;
        }
        capacity_ = capacity;
        skipped_ = skipped;
    }
    void disable() {
        asked_ = Stacks::none;
        choose_stacks();
        capacity_ = 0;
        clear();
    }
    void clear() {
        std::vector<Occurrence>().swap(ring_);
        oldest_ = 0;
    }

    // Notes at least the stacks of live memory from now on, also without a history, or no longer does so.
    void keep_stacks(bool wanted) {
        least_ = wanted ? Stacks::live : Stacks::none;
        choose_stacks();
    }

    Stacks stacks() const { return stacks_.load(std::memory_order_relaxed); }
    bool recording() const { return capacity_ != 0; }
    void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }

    // Tells `observer` of memory that goes back to the driver, from now on. Null ends that.
    void observe(MemoryObserver *observer, int device) {
        observer_ = observer;
        device_ = device;
    }

    bool is_observed() const { return observer_ != nullptr; }

    // Adds an event with the stack of the call that this thread is in. If that stack is not known, the event has `own`,
    // the stack of the memory itself. A lack of host memory loses the event and does nothing else.
    void record(Action action, Address address, std::size_t size, Stream stream, StackId own,
                const Scope *scope = NotedCall::scope()) noexcept {
        if (observer_ != nullptr)
            tell_observer(action, address, size);
        note_move(action, address, size, stream, own, scope);
    }

    // The same for memory of a segment that came from the driver or went back.
    void record_segment(Action action, Address address, std::size_t size, Stream stream, StackId own) noexcept {
        changes_.note(action == Action::segment_alloc || action == Action::segment_map, size);
        record(action, address, size, stream, own);
    }

    // The same for memory of live blocks, which keep their addresses and their accesses. So the observer hears nothing.
    void record_sleep(Action action, Address address, std::size_t size, Stream stream, StackId own) noexcept {
        changes_.note(action == Action::segment_map, size);
        note_move(action, address, size, stream, own);
    }

    // The same as record() for memory that comes to other addresses. The observer hears nothing, because the accesses
    // of the memory that is still mapped stay of interest.
    void note_move(Action action, Address address, std::size_t size, Stream stream, StackId own,
                   const Scope *scope = NotedCall::scope()) noexcept {
        if (capacity_ == 0 || (skipped_ >> static_cast<unsigned>(action) & 1) != 0)
            return;
        using namespace std::chrono;
        const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
        const StackId call = NotedCall::stack();
        const StackId stack = stacks() < Stacks::allocations ? 0 : call != 0 ? call : own;
        Occurrence event{action, address, size, stream, now, stack, metadata_, scope};
        if (ring_.size() < capacity_) {
            try {
                ring_.push_back(std::move(event));
            } catch (...) {
            }
            return;
        }
        ring_[oldest_] = std::move(event);
        oldest_ = (oldest_ + 1) % capacity_;
    }

    // Tells the observer of a segment whose arrays no graph uses after their end.
    void tell_mapped(Address address, std::size_t size) noexcept {
        if (observer_ != nullptr)
            observer_->memory_mapped(address, size);
    }

    // Tells the observer of a second mapping that goes back to the driver.
    void forget(Address address, std::size_t size) noexcept {
        if (observer_ != nullptr)
            tell_observer(Action::segment_unmap, address, size);
    }

    SegmentChanges::Bytes take_segment_changes() noexcept { return changes_.take(); }

    std::vector<Occurrence> events() const {
        std::vector<Occurrence> ordered;
        ordered.reserve(ring_.size());
        ordered.insert(ordered.end(), ring_.begin() + static_cast<std::ptrdiff_t>(oldest_), ring_.end());
        ordered.insert(ordered.end(), ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(oldest_));
        return ordered;
    }

private:
    void choose_stacks() { stacks_ = std::max(asked_, least_); }

    // The driver waits for the device before it takes a whole segment back. Memory that is unmapped has no users.
    void tell_observer(Action action, Address address, std::size_t size) noexcept {
        if (action == Action::segment_free || action == Action::segment_unmap)
            observer_->memory_unmapped(address, size, device_, action == Action::segment_free);
    }

    std::vector<Occurrence> ring_;
    std::size_t oldest_ = 0;
    std::size_t capacity_ = 0;
    std::uint32_t skipped_ = 0;
    MemoryObserver *observer_ = nullptr;
    int device_ = 0;
    Metadata metadata_;
    SegmentChanges changes_;
    Stacks asked_ = Stacks::none, least_ = Stacks::none;
    std::atomic<Stacks> stacks_{Stacks::none};
};

} // namespace tcuda
