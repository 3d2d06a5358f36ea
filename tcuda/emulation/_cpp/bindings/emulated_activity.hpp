// When an emulated device works.
#pragma once

#include <nanobind/nanobind.h>

#include <map>

namespace tcuda {

// The times, in nanoseconds, of the operations of a device. Operations without a gap between
// them are one interval, so that the queue of a program that never waits needs little memory.
class EmulatedActivity {
public:
    // Adds an operation. No operation starts before `now`, the present time.
    void add(long long start, long long end, long long now);

    // The work from the beginning to `now`, which is the present time or later.
    long long until(long long now) const;

    // The work from `start` to `end`, without old operations of which only the sum is kept.
    long long within(long long start, long long end) const;

private:
    static constexpr std::size_t most = 4096; // intervals

    std::map<long long, long long> intervals_; // the end of each by its start; there is a gap between two of them
    long long summed_ = 0;                     // the work of intervals that are no longer kept
};

// Adds the class to the module.
void bind_emulated_activity(nanobind::module_ &module);

} // namespace tcuda
