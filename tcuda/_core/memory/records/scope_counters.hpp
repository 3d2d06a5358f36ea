#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "memory/records/scope.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// The bytes of each name of scopes on a device: a block counts for its scope and for all scopes around that. The lock
// of the device's ledger guards the counters. The functions are not inline, so that calls outside of all scopes stay
// short.
class ScopeCounters {
public:
    // Returns `scope`, or null, with nothing counted, if there is no host memory for a counter.
    [[gnu::noinline]] const Scope *count_allocation(const Scope *scope, std::int64_t bytes) noexcept {
        std::size_t names = counters_.size();
        for (const Scope *each = scope; each != nullptr; each = each->outer)
            names = std::max(names, each->name + 1);
        try {
            counters_.resize(names);
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
        for (const Scope *each = scope; each != nullptr; each = each->outer)
            counters_[each->name].increase(bytes);
        return scope;
    }
    [[gnu::noinline]] void count_free(const Scope *scope, std::int64_t bytes) noexcept {
        for (; scope != nullptr; scope = scope->outer)
            counters_[scope->name].decrease(bytes);
    }

    void reset_peaks() {
        for (Counter &counter : counters_)
            counter.reset_peak();
    }
    void reset_accumulated() {
        for (Counter &counter : counters_)
            counter.reset_accumulated();
    }

    // By the number of the name.
    const std::vector<Counter> &all() const { return counters_; }

private:
    std::vector<Counter> counters_;
};

} // namespace tcuda
