#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda::watch {

// Uses of an operation, which keep their memory for the next operation.
class UseList {
public:
    void clear() { count_ = 0; }

    // Adds the bytes of `shape`, whose items have one byte.
    void add(Address address, const std::vector<races::Dimension> &shape, races::AccessKind kind, bool possible,
             std::string_view label, bool page_locked = false) {
        if (count_ == uses_.size())
            uses_.emplace_back();
        races::RaceDetector::NamedUse &named = uses_[count_++];
        named.use.region.set(address, 1, shape);
        named.use.kind = kind;
        named.use.possible = possible;
        named.use.page_locked = page_locked;
        named.label = label;
    }
    void add(Address address, std::size_t size, races::AccessKind kind, bool possible, std::string_view label) {
        bytes_.assign(1, {static_cast<std::int64_t>(size), 1});
        add(address, bytes_, kind, possible, label);
    }

    races::RaceDetector::NamedUses get() { return {uses_.data(), count_}; }

private:
    std::vector<races::RaceDetector::NamedUse> uses_;
    std::vector<races::Dimension> bytes_;
    std::size_t count_ = 0;
};

} // namespace tcuda::watch
