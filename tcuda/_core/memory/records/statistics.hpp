// The counters behind torch's memory_stats().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tcuda {

struct Counter {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;
    std::int64_t freed = 0;

    void increase(std::int64_t amount) {
        current += amount;
        allocated += amount;
        peak = std::max(peak, current);
    }
    void decrease(std::int64_t amount) {
        current -= amount;
        freed += amount;
    }
    void add(std::int64_t amount) { amount >= 0 ? increase(amount) : decrease(-amount); }
    void reset_peak() { peak = current; }
    void reset_accumulated() { allocated = freed = 0; }
    // Whether any figure is not 0.
    bool is_used() const { return current != 0 || peak != 0 || allocated != 0 || freed != 0; }
};

// A counter of all blocks, and one for each of the two sizes of blocks that torch calls pools.
struct PooledCounter {
    Counter all, small, large;

    void increase(bool is_large, std::int64_t amount) {
        all.increase(amount);
        (is_large ? large : small).increase(amount);
    }
    void decrease(bool is_large, std::int64_t amount) {
        all.decrease(amount);
        (is_large ? large : small).decrease(amount);
    }
    void add(bool is_large, std::int64_t amount) {
        all.add(amount);
        (is_large ? large : small).add(amount);
    }
    template <typename Visit> void each(Visit visit) {
        visit(all);
        visit(small);
        visit(large);
    }
};

// The names are those of memory_stats(). docs/memory.md describes each of them.
struct Statistics {
    PooledCounter active, active_bytes, allocated_bytes, allocation, inactive_split, inactive_split_bytes,
        requested_bytes, reserved_bytes, segment, sleeping_bytes;
    Counter oversize_allocations, oversize_segments;
    std::int64_t max_split_size = -1, num_alloc_retries = 0, num_device_alloc = 0, num_device_free = 0,
                 num_oom_rejections = 0, num_ooms = 0, num_sync_all_streams = 0;

    std::size_t allocated() const { return static_cast<std::size_t>(allocated_bytes.all.current); }
    std::size_t reserved() const { return static_cast<std::size_t>(reserved_bytes.all.current); }

    template <typename Visit> void each_counter(Visit visit) {
        for (PooledCounter *counter :
             {&active, &active_bytes, &allocated_bytes, &allocation, &inactive_split, &inactive_split_bytes,
              &requested_bytes, &reserved_bytes, &segment, &sleeping_bytes})
            counter->each(visit);
        visit(oversize_allocations);
        visit(oversize_segments);
    }

    void reset_peaks() {
        each_counter([](Counter &counter) { counter.reset_peak(); });
    }
    void reset_accumulated() {
        each_counter([](Counter &counter) { counter.reset_accumulated(); });
        num_alloc_retries = num_ooms = num_sync_all_streams = num_device_alloc = num_device_free = num_oom_rejections =
            0;
    }
};

} // namespace tcuda
