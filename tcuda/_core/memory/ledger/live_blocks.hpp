#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "driver/driver.hpp"
#include "memory/allocator/address_map.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/records/history.hpp"
#include "memory/records/scope_counters.hpp"
#include "memory/records/statistics.hpp"
#include "memory/records/trackers.hpp"

namespace tcuda {

// The blocks that are allocated or await their free, by address. Every allocation and every free is counted here.
// The functions are inline because every allocation and every free calls them.
class LiveBlocks {
public:
    LiveBlocks(const Settings &settings, Statistics &statistics, ScopeCounters &scopes, History &history,
               Trackers &trackers)
        : settings_(settings), statistics_(statistics), scopes_(scopes), history_(history), trackers_(trackers) {}
    LiveBlocks(const LiveBlocks &) = delete;
    LiveBlocks &operator=(const LiveBlocks &) = delete;

    Block *find(Address address) const { return blocks_.find(address); }

    // The allocated block that begins at `address`, or null. A block that awaits its free is not allocated.
    Block *find_allocated(Address address) const {
        Block *block = blocks_.find(address);
        return block != nullptr && block->state == Block::State::allocated ? block : nullptr;
    }

    template <typename Visit> void each(Visit visit) const { blocks_.each(visit); }

    // Whether any block can contain the address. False for nearly all numbers that are no addresses of the device.
    bool may_contain(Address address) const { return address >= lowest_ && address < beyond_; }
    // Whether all blocks begin at multiples of the unit. External sources need not keep to that.
    bool are_aligned() const { return begins_ % unit == 0; }
    std::size_t size() const { return blocks_.size(); }

    // Makes room, so that the next add() cannot throw.
    void reserve_one() { blocks_.reserve_one(); }

    void add(Block *block, std::size_t requested, CaptureId capture, StackId stack, const Scope *scope) {
        blocks_.insert(block->address, block);
        lowest_ = std::min(lowest_, block->address);
        beyond_ = std::max(beyond_, block->address + block->size);
        begins_ |= block->address;
        block->stack = stack;
        block->capture = capture;
        block->requested = requested;
        const bool large = block->is_large;
        const auto bytes = static_cast<std::int64_t>(block->size);
        statistics_.allocation.increase(large, 1);
        statistics_.allocated_bytes.increase(large, bytes);
        statistics_.active.increase(large, 1);
        statistics_.active_bytes.increase(large, bytes);
        statistics_.requested_bytes.increase(large, static_cast<std::int64_t>(requested));
        block->oversize = block->size >= settings_.max_split_size;
        if (block->oversize)
            statistics_.oversize_allocations.increase(1);
        block->scope = scope == nullptr ? nullptr : scopes_.count_allocation(scope, bytes);
        ever_used_.store(true, std::memory_order_relaxed);
        history_.record(Action::alloc, block->address, requested, block->stream, stack, block->scope);
        trackers_.count_allocation(bytes);
    }

    // Counts the free that a program asks for. The block stays here until remove().
    void count_free(Block *block) {
        const auto bytes = static_cast<std::int64_t>(block->size);
        statistics_.allocation.decrease(block->is_large, 1);
        statistics_.allocated_bytes.decrease(block->is_large, bytes);
        if (block->oversize)
            statistics_.oversize_allocations.decrease(1);
        block->oversize = false;
        if (block->scope != nullptr)
            scopes_.count_free(block->scope, bytes);
        history_.record(Action::free_requested, block->address, block->requested, block->stream, block->stack,
                        block->scope);
        trackers_.count_free(bytes);
    }

    // Counts that the free is complete, and forgets the block.
    void remove(Block *block) {
        const bool large = block->is_large;
        statistics_.active.decrease(large, 1);
        statistics_.active_bytes.decrease(large, static_cast<std::int64_t>(block->size));
        statistics_.requested_bytes.decrease(large, static_cast<std::int64_t>(block->requested));
        history_.record(Action::free_completed, block->address, block->requested, block->stream, block->stack,
                        block->scope);
        blocks_.erase(block->address);
    }

    // Whether there was ever an allocation. May be called without the lock.
    bool ever_used() const { return ever_used_.load(std::memory_order_relaxed); }

private:
    const Settings &settings_;
    Statistics &statistics_;
    ScopeCounters &scopes_;
    History &history_;
    Trackers &trackers_;
    AddressMap<Block> blocks_;
    Address lowest_ = std::numeric_limits<Address>::max(), beyond_ = 0; // of all blocks that there were
    Address begins_ = 0;                                               // the bits of the addresses of these blocks
    std::atomic<bool> ever_used_{false};
};

} // namespace tcuda
