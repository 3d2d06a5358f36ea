#pragma once

#include <cstddef>
#include <vector>

#include "sanitizer/_cpp/order/clock.hpp"

namespace tcuda::races {

// The slots of clocks, and the last epoch of each. A slot whose stream or graph is gone is used again once the host
// knows all of the slot's epochs: every later operation then comes after them.
class Slots {
public:
    Slot take(const Clock &host) {
        for (std::size_t place = 0; place < retired_.size(); ++place) {
            const Slot slot = retired_[place];
            if (epochs_[slot] > host.of(slot))
                continue;
            retired_[place] = retired_.back();
            retired_.pop_back();
            return slot;
        }
        epochs_.push_back(0);
        return static_cast<Slot>(epochs_.size() - 1);
    }
    void retire(Slot slot) { retired_.push_back(slot); }

    Epoch last(Slot slot) const { return epochs_[slot]; }
    Epoch next(Slot slot) { return ++epochs_[slot]; }
    void advance(Slot slot, Epoch count) { epochs_[slot] += count; }

    std::size_t size() const { return epochs_.size(); }

private:
    std::vector<Epoch> epochs_;
    std::vector<Slot> retired_;
};

} // namespace tcuda::races
