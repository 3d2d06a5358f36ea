#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/order/names.hpp"
#include "sanitizer/_cpp/order/recent_step.hpp"

namespace tcuda::races {

// A ring of the newest steps of the program.
class RecentSteps {
public:
    struct Step {
        RecentStep::Kind kind = RecentStep::Kind::work;
        bool whole_device = false;
        bool has_event = false;
        int device = -1;
        NameId name = 0;
        StackId stack = 0;
        std::uint64_t number = 0;
        Stream stream = 0;
        std::uintptr_t event = 0;
    };

    void add(const Step &step) { ring_[next_++ % ring_.size()] = step; }

    // Oldest first.
    std::vector<RecentStep> read(const Names &names) const {
        std::vector<RecentStep> steps;
        for (std::size_t place = next_ > ring_.size() ? next_ - ring_.size() : 0; place < next_; ++place) {
            const Step &step = ring_[place % ring_.size()];
            steps.push_back({step.kind, step.number, step.device, step.stream, step.whole_device, names.text(step.name),
                             step.has_event ? std::optional(step.event) : std::nullopt, step.stack});
        }
        return steps;
    }

    std::size_t size() const { return next_ < ring_.size() ? next_ : ring_.size(); }

private:
    std::array<Step, 64> ring_;
    std::size_t next_ = 0;
};

} // namespace tcuda::races
