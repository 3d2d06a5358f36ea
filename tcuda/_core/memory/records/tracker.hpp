#pragma once

#include <algorithm>
#include <cstdint>

#include "driver/stream_key.hpp"

namespace tcuda {

// Counts the allocations and frees of one thread, or of all threads, while the tracker is attached to a ledger.
class Tracker {
public:
    explicit Tracker(bool of_thread) : thread_(of_thread ? thread_number() : 0) {}

    bool follows_this_thread() const { return thread_ == 0 || thread_ == thread_number(); }

    void count_allocation(std::int64_t bytes) {
        ++allocations;
        allocated += bytes;
        current += bytes;
        peak = std::max(peak, current);
    }
    void count_free(std::int64_t bytes) {
        freed += bytes;
        current -= bytes;
    }

    std::int64_t current = 0, peak = 0, allocated = 0, freed = 0, allocations = 0;

private:
    std::uintptr_t thread_; // 0 for all threads
};

} // namespace tcuda
