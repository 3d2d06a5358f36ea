#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace tcuda::races {

using Slot = std::uint32_t;  // the place of a stream, or of a chain of a graph, in every clock
using Epoch = std::uint64_t; // counts what happens in a slot; 0 is before everything

// For each slot, the last epoch that is known to be complete or to come before. Copies share their memory until one of
// them changes.
class Clock {
public:
    Epoch of(Slot slot) const { return epochs_ != nullptr && slot < epochs_->size() ? (*epochs_)[slot] : 0; }

    void raise(Slot slot, Epoch epoch) {
        if (of(slot) < epoch) {
            own(slot + 1);
            (*epochs_)[slot] = epoch;
        }
    }

    // Sets an epoch, which may be earlier than the epoch before.
    void set(Slot slot, Epoch epoch) {
        own(slot + 1);
        (*epochs_)[slot] = epoch;
    }

    // Returns whether the clock has changed.
    bool join(const Clock &other) {
        if (other.epochs_ == nullptr || other.epochs_ == epochs_)
            return false;
        if (epochs_ == nullptr) {
            epochs_ = other.epochs_;
            return true;
        }
        const std::vector<Epoch> &theirs = *other.epochs_;
        std::size_t slot = 0;
        while (slot < theirs.size() && theirs[slot] <= of(static_cast<Slot>(slot)))
            ++slot;
        if (slot == theirs.size())
            return false;
        own(theirs.size());
        for (; slot < theirs.size(); ++slot)
            (*epochs_)[slot] = std::max((*epochs_)[slot], theirs[slot]);
        return true;
    }

private:
    void own(std::size_t size) {
        if (epochs_ == nullptr)
            epochs_ = std::make_shared<std::vector<Epoch>>(size);
        else if (epochs_.use_count() > 1)
            epochs_ = std::make_shared<std::vector<Epoch>>(*epochs_);
        if (epochs_->size() < size)
            epochs_->resize(size);
    }

    std::shared_ptr<std::vector<Epoch>> epochs_;
};

// What comes before something new: everything in its own slot, and what its clock or the host knows.
class Horizon {
public:
    Horizon(Slot own, const Clock &before, const Clock &host) : own_(own), before_(before), host_(host) {}

    bool is_before(Slot slot, Epoch epoch) const {
        return slot == own_ || epoch <= before_.of(slot) || epoch <= host_.of(slot);
    }
    bool host_knows(Slot slot, Epoch epoch) const { return epoch <= host_.of(slot); }

private:
    Slot own_;
    const Clock &before_, &host_;
};

constexpr Slot no_slot = ~Slot(0);

// A point in a slot, with everything that comes before the point.
struct Moment {
    Slot slot = 0;
    Epoch epoch = 0;
    Clock before;
};

} // namespace tcuda::races
