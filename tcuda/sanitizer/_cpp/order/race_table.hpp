#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/order/access.hpp"
#include "sanitizer/_cpp/order/race.hpp"

namespace tcuda::races {

// The races that were found. Races with the same names, stacks, kinds and confidences count as the same race.
class RaceTable {
public:
    static constexpr std::size_t most_races = 4096; // more of them are neither kept nor reported

    using Side = std::tuple<StackId, StackId, NameId, NameId, AccessKind, bool>;
    using Key = std::tuple<Side, Side, bool>;

    // `is_exact`: whether the race is exact, even if the accesses are possible only.
    static Key key_of(const Access &previous, const Access &current, bool use_after_free, bool is_exact) {
        return {side_of(previous, is_exact), side_of(current, is_exact), use_after_free};
    }

    bool knows(const Key &key) const { return races_.count(key) != 0; }

    // Counts the race again; false if the race is new.
    bool count_again(const Key &key) {
        const auto known = races_.find(key);
        if (known == races_.end())
            return races_.size() >= most_races;
        known->second->count.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    void add(const Key &key, std::shared_ptr<const Race> race) {
        order_.push_back(race);
        races_.emplace(key, std::move(race));
    }
    void clear() {
        races_.clear();
        order_.clear();
    }

    const std::vector<std::shared_ptr<const Race>> &all() const { return order_; }

private:
    static Side side_of(const Access &access, bool is_exact) {
        const Operation &operation = access.operation;
        return {operation.stack,  operation.launch_stack, operation.name,
                access.use.label, access.use.kind,        access.use.possible && !is_exact};
    }

    std::map<Key, std::shared_ptr<const Race>> races_;
    std::vector<std::shared_ptr<const Race>> order_; // first found first
};

} // namespace tcuda::races
