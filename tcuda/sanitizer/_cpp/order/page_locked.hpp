#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/order/access.hpp"
#include "sanitizer/_cpp/order/clock.hpp"

namespace tcuda::races {

// Page-locked memory of the host, and the uses of this memory that the host does not know to be complete. Until then
// the host may not write to the memory, and may not read what is written.
class PageLocked {
public:
    // Memory that is page-locked until remove(). All uses of this memory count, also those of kernels.
    void add(Address begin, std::size_t size) { ranges_[begin] = begin + size; }
    void remove(Address begin) {
        const auto found = ranges_.find(begin);
        if (found == ranges_.end())
            return;
        forget(found->first, found->second);
        ranges_.erase(found);
    }

    // Memory of `size` bytes that begins with a page, and that shares no page with other memory of the program. Where a
    // use reaches the end of the memory, the rest of the last page belongs to the use.
    void add_block(Address begin, std::size_t size) { blocks_[begin] = begin + size; }
    void remove_block(Address begin) { blocks_.erase(begin); }

    bool counts(const Use &use) const { return use.page_locked || (!ranges_.empty() && is_in_range(use.region)); }

    // Work that the host does in the order of a stream, or that waits for the host. The host may use the memory of what
    // comes after this work until the work is complete.
    void hold(Slot slot, Epoch epoch) {
        const auto known =
            std::find_if(held_.begin(), held_.end(), [&](const Held &each) { return each.slot == slot; });
        if (known == held_.end())
            held_.push_back({slot, epoch, epoch});
        else
            known->last = epoch;
    }

    // Adds a use that counts. Uses with gaps are left out, because the host may use the gaps. Possible uses and uses
    // after work of the host are left out too, because the host may know that the memory is not in use.
    void add_use(const Operation &operation, const Use &use, const Horizon &horizon) {
        if (!use.region.contiguous() || use.region.empty() || use.possible)
            return;
        if (std::any_of(held_.begin(), held_.end(),
                        [&](const Held &each) { return horizon.is_before(each.slot, each.first); }))
            return;
        const InFlight made{operation.slot, operation.epoch, use.region.begin(), end_of(use.region), writes(use.kind)};
        changed_ = true;
        // The work of a slot is complete in its order, so the later use stands for both.
        const auto before = std::find_if(in_flight_.rbegin(), in_flight_.rend(),
                                         [&](const InFlight &each) { return each.is_repeated_by(made); });
        if (before != in_flight_.rend()) {
            before->epoch = made.epoch;
            return;
        }
        in_flight_.push_back(made);
        if (in_flight_.size() > most_)
            in_flight_.erase(in_flight_.begin(), in_flight_.begin() + most_ / 2); // the host has not waited for long
    }

    // Forgets the uses that the host knows to be complete.
    void settle(const Horizon &host) {
        if (!in_flight_.empty())
            forget_if([&](const InFlight &use) { return host.host_knows(use.slot, use.epoch); });
        if (!held_.empty())
            held_.erase(std::remove_if(held_.begin(), held_.end(),
                                       [&](const Held &each) { return host.host_knows(each.slot, each.last); }),
                        held_.end());
    }

    // Forgets the uses that come before `horizon`.
    void forget(const Horizon &horizon) {
        if (!in_flight_.empty())
            forget_if([&](const InFlight &use) { return horizon.is_before(use.slot, use.epoch); });
    }

    // Forgets the uses of a part of a range, and all uses.
    void forget(Address begin, Address end) {
        if (!in_flight_.empty())
            forget_if([&](const InFlight &use) { return use.begin < end && begin < use.end; });
    }
    void forget_all() {
        forget_if([](const InFlight &) { return true; });
    }

    bool is_used(Address begin, Address end) const {
        return std::any_of(in_flight_.begin(), in_flight_.end(),
                           [&](const InFlight &use) { return use.begin < end && begin < use.end; });
    }
    bool knows(Address address) const {
        return around(ranges_, address) != ranges_.end() || around(blocks_, address) != blocks_.end();
    }

    // Whether watched() has changed since the last call.
    bool take_changed() { return std::exchange(changed_, false); }

    // What to watch now.
    std::vector<WatchedRange> watched() const {
        std::vector<WatchedRange> made;
        made.reserve(in_flight_.size());
        for (const InFlight &use : in_flight_)
            made.push_back({use.begin, use.end, use.written});
        return made;
    }

private:
    using Ends = std::map<Address, Address>; // the end of each range, by its begin

    struct InFlight {
        Slot slot;
        Epoch epoch;
        Address begin, end;
        bool written;

        bool is_repeated_by(const InFlight &later) const {
            return slot == later.slot && begin == later.begin && end == later.end && written == later.written;
        }
    };

    // The first and the last work of the host in a slot.
    struct Held {
        Slot slot;
        Epoch first, last;
    };

    static Ends::const_iterator around(const Ends &ranges, Address address) {
        const auto after = ranges.upper_bound(address);
        return after == ranges.begin() || std::prev(after)->second <= address ? ranges.end() : std::prev(after);
    }

    bool is_in_range(const Region &region) const {
        const auto range = around(ranges_, region.begin());
        return range != ranges_.end() && region.end() <= range->second;
    }

    Address end_of(const Region &region) const {
        const auto block = around(blocks_, region.begin());
        return block == blocks_.end() || region.end() != block->second ? region.end()
                                                                       : PageWatch::page_end(region.end());
    }

    template <typename Condition> void forget_if(Condition condition) {
        const auto rest = std::remove_if(in_flight_.begin(), in_flight_.end(), condition);
        changed_ = changed_ || rest != in_flight_.end();
        in_flight_.erase(rest, in_flight_.end());
    }

    static constexpr std::size_t most_ = 1024;

    Ends ranges_, blocks_;
    std::vector<InFlight> in_flight_;
    std::vector<Held> held_;
    bool changed_ = false;
};

} // namespace tcuda::races
