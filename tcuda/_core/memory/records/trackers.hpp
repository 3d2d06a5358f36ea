#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memory/records/tracker.hpp"

namespace tcuda {

// The trackers that are attached to the ledger of a device. The lock of that ledger guards them.
class Trackers {
public:
    void attach(Tracker *tracker) { attached_.push_back(tracker); }

    // False, with nothing changed, if the tracker is not attached.
    bool detach(Tracker *tracker) {
        const auto known = std::find(attached_.begin(), attached_.end(), tracker);
        if (known == attached_.end())
            return false;
        attached_.erase(known);
        return true;
    }

    void count_allocation(std::int64_t bytes) {
        for (Tracker *tracker : attached_)
            if (tracker->follows_this_thread())
                tracker->count_allocation(bytes);
    }
    void count_free(std::int64_t bytes) {
        for (Tracker *tracker : attached_)
            if (tracker->follows_this_thread())
                tracker->count_free(bytes);
    }

private:
    std::vector<Tracker *> attached_;
};

} // namespace tcuda
