// The counters behind torch's host_memory_stats().
#pragma once

#include <algorithm>
#include <cstdint>

#include "memory/records/statistics.hpp"

namespace tcuda {

// The durations of calls, in microseconds.
struct Durations {
    std::int64_t total = 0, max = 0, min = 0, count = 0;

    void add(std::int64_t duration) {
        min = count == 0 ? duration : std::min(min, duration);
        max = std::max(max, duration);
        total += duration;
        ++count;
    }
    std::int64_t average() const { return count == 0 ? 0 : total / count; }
    void reset_peak() { max = min = 0; }
    void reset_accumulated() { total = count = 0; }
};

struct HostStatistics {
    Counter active_requests, active_bytes; // the blocks of the program
    Counter allocations, allocated_bytes;  // the segments of the driver
    Durations host_alloc_time, host_free_time;
    std::int64_t num_host_alloc = 0, num_host_free = 0;

    template <typename Visit> void each_counter(Visit visit) {
        for (Counter *counter : {&active_requests, &active_bytes, &allocations, &allocated_bytes})
            visit(*counter);
    }
    void reset_peaks() {
        each_counter([](Counter &counter) { counter.reset_peak(); });
        host_alloc_time.reset_peak();
        host_free_time.reset_peak();
    }
    void reset_accumulated() {
        each_counter([](Counter &counter) { counter.reset_accumulated(); });
        host_alloc_time.reset_accumulated();
        host_free_time.reset_accumulated();
        num_host_alloc = num_host_free = 0;
    }
};

} // namespace tcuda
