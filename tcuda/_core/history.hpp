// What happened to device memory, newest last: a ring of events.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "block.hpp"

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

struct Occurrence {
    Action action;
    Address address;
    std::size_t size;
    Stream stream;
    std::int64_t microseconds; // since the epoch
    StackId stack;
    std::uint32_t metadata; // index of the text that was set then
};

// Which stacks are noted, in the words of _record_memory_history(context=...).
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
    void set_metadata(std::uint32_t metadata) { metadata_ = metadata; }

    // A lack of host memory costs the event and nothing else.
    void record(Action action, Address address, std::size_t size, Stream stream, StackId stack) noexcept {
        if (capacity_ == 0 || (skipped_ >> static_cast<unsigned>(action) & 1) != 0)
            return;
        using namespace std::chrono;
        const auto now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
        const Occurrence event{action, address, size, stream, now, stack, metadata_};
        if (ring_.size() < capacity_) {
            try {
                ring_.push_back(event);
            } catch (...) {
            }
            return;
        }
        ring_[oldest_] = event;
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
    std::uint32_t metadata_ = 0;
    std::atomic<Stacks> stacks_{Stacks::none};
};

} // namespace tcuda
