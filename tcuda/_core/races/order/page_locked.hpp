#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "races/host_accesses/page_watch.hpp"
#include "races/order/access.hpp"
#include "races/order/clock.hpp"

namespace tcuda::races {

// Page-locked memory of the host, and the uses of this memory that the host does not know to be complete. Until then
// the host may not write to the memory, and may not read what is written.
class PageLocked {
public:
    bool empty() const { return ranges_.empty(); }

    void add(Address begin, std::size_t size) { ranges_[begin] = begin + size; }
    void remove(Address begin) {
        const auto found = ranges_.find(begin);
        if (found == ranges_.end())
            return;
        forget([&](const InFlight &use) { return found->first <= use.begin && use.begin < found->second; });
        ranges_.erase(found);
    }

    // Adds the use of an operation. Uses with gaps are left out, because the host may use the gaps.
    void add_use(const Operation &operation, const Use &use) {
        const auto after = ranges_.upper_bound(use.region.begin());
        if (!use.region.contiguous() || use.region.empty() || after == ranges_.begin() ||
            use.region.end() > std::prev(after)->second)
            return;
        in_flight_.push_back({operation.slot, operation.epoch, use.region.begin(), use.region.end(), writes(use.kind)});
        if (in_flight_.size() > most_)
            in_flight_.erase(in_flight_.begin(), in_flight_.begin() + most_ / 2); // the host has not waited for long
        changed_ = true;
    }

    // Forgets the uses that the host knows to be complete.
    void settle(const Horizon &host) {
        if (!in_flight_.empty())
            forget([&](const InFlight &use) { return host.host_knows(use.slot, use.epoch); });
    }

    bool changed() const { return changed_; }

    // What to watch now.
    std::vector<WatchedRange> watched() {
        changed_ = false;
        std::vector<WatchedRange> made;
        for (const InFlight &use : in_flight_)
            made.push_back({use.begin, use.end, use.written});
        return made;
    }

private:
    struct InFlight {
        Slot slot;
        Epoch epoch;
        Address begin, end;
        bool written;
    };

    template <typename Condition> void forget(Condition condition) {
        const auto rest = std::remove_if(in_flight_.begin(), in_flight_.end(), condition);
        changed_ = changed_ || rest != in_flight_.end();
        in_flight_.erase(rest, in_flight_.end());
    }

    static constexpr std::size_t most_ = 1024;

    std::map<Address, Address> ranges_; // the end of each range, by its begin
    std::vector<InFlight> in_flight_;
    bool changed_ = false;
};

} // namespace tcuda::races
