// The values that a register or a piece of memory may hold.
#pragma once

#include <cstdint>

#include "sanitizer/_cpp/kernel_uses/ptx_values.hpp"

namespace tcuda::kernel_uses::ptx {

class Held {
public:
    Held() = default;
    explicit Held(Value value) : value_(value) {}

    Value value() const { return value_; }

    // Adds a value. Returns whether something changed.
    bool add(Values &values, Value other) {
        if (other == value_)
            return false;
        Value joined = values.either(value_, other);
        if (joined == value_)
            return false;
        changes_ += changes_ < coarse_changes;
        if (changes_ > exact_changes) // as in a loop
            joined = changes_ < coarse_changes ? values.moved(joined) : values.coarse(joined);
        if (joined == value_)
            return false;
        value_ = joined;
        return true;
    }

private:
    // After so many changes the numbers, and then the sums, are no longer told apart.
    static constexpr std::uint8_t exact_changes = 4, coarse_changes = 16;

    Value value_ = Values::none;
    std::uint8_t changes_ = 0;
};

} // namespace tcuda::kernel_uses::ptx
