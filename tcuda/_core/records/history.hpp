// What happened to device memory, newest last: a ring of events.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/block.hpp"

namespace tcuda {

enum class Action : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    snapshot,
    oom,
};
constexpr std::size_t actions = 9;

// A text of the user's that is attached to events; null for "". The text lives as long as an event has it.
using Metadata = std::shared_ptr<const std::string>;

// The stack of the call that this thread is in, where the history notes the stacks of such calls: so the calls that take
// and give memory need not hand it on to everything that they cause.
class NotedCall {
public:
    // Nothing happens unless `recording`, so that a call without a history costs nothing.
    NotedCall(bool recording, StackId stack) : recording_(recording) {
        if (recording_)
            before_ = std::exchange(current_, stack);
    }
    ~NotedCall() {
        if (recording_)
            current_ = before_;
    }
    NotedCall(const NotedCall &) = delete;
    NotedCall &operator=(const NotedCall &) = delete;

    // 0 where the stack of the call was not wanted.
    static StackId stack() { return current_; }

private:
    inline static thread_local StackId current_ = 0;
    const bool recording_;
    StackId before_ = 0;
};

struct Occurrence {
    Action action;
    Address address;
    std::size_t size;
    Stream stream;
    std::int64_t microseconds; // since the epoch
    StackId stack;
    Metadata metadata; // that was set then
};

// Which stacks are noted, in the words of _record_memory_history(context=...): none; those of allocations, for live
// memory alone, or in the events too; those of all calls.
enum class Stacks : std::uint8_t { none, live, allocations, all };

// Lock rule: the events are guarded by the lock of the device's ledger; `stacks()` may be asked without it.
class History {
public:
    // `capacity` 0 records no events.
    void enable(Stacks stacks, std::size_t capacity, std::uint32_t skipped) {
        stacks_ = stacks;
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
        stacks_ = Stacks::none;
        capacity_ = 0;
        clear();
    }
    void clear() {
        std::vector<Occurrence>().swap(ring_);
        oldest_ = 0;
    }

    Stacks stacks() const { return stacks_.load(std::memory_order_relaxed); }
    bool recording() const { return capacity_ != 0; }
    void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }

    // The event has the stack of the call that this thread is in or, where that is not known, `own`: the stack that the
    // memory itself has. A lack of host memory costs the event and nothing else.
    void record(Action action, Address address, std::size_t size, Stream stream, StackId own) noexcept {
        if (capacity_ == 0 || (skipped_ >> static_cast<unsigned>(action) & 1) != 0)
            return;
        using namespace std::chrono;
        const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
        const StackId call = NotedCall::stack();
        const StackId stack = stacks() < Stacks::allocations ? 0 : call != 0 ? call : own;
        Occurrence event{action, address, size, stream, now, stack, metadata_};
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

    std::vector<Occurrence> events() const {
        std::vector<Occurrence> ordered;
        ordered.reserve(ring_.size());
        ordered.insert(ordered.end(), ring_.begin() + static_cast<std::ptrdiff_t>(oldest_), ring_.end());
        ordered.insert(ordered.end(), ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(oldest_));
        return ordered;
    }

private:
    std::vector<Occurrence> ring_;
    std::size_t oldest_ = 0;
    std::size_t capacity_ = 0;
    std::uint32_t skipped_ = 0;
    Metadata metadata_;
    std::atomic<Stacks> stacks_{Stacks::none};
};

} // namespace tcuda
