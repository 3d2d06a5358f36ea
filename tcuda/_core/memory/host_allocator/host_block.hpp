// A block of page-locked host memory, and the segment that it is a part of.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>

#include "driver/driver.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

// Memory that the driver has allocated in one call.
struct HostSegment {
    Address address = 0;
    std::size_t size = 0;
    bool small = false;      // whether the blocks are at most small_host_limit large
    bool reserve = false;    // whether the segment only lets allocations of small blocks ask less often
    bool registered = false; // whether the memory is pages of the process that the driver has locked
    StackId stack = 0;       // of the allocation that needed the segment
};

struct HostBlock;

struct SmallerHostBlock {
    inline bool operator()(const HostBlock *left, const HostBlock *right) const;
};
using FreeHostBlocks = std::set<HostBlock *, SmallerHostBlock>; // by size, then by address
using HostBlocks = std::map<Address, std::unique_ptr<HostBlock>>; // by address

struct HostBlock {
    enum class State {
        free,      // in a set of free blocks
        kept,      // free, in the list of the free blocks of its size
        allocated, // the program's
        doubtful,  // freed; work of a device may still use the memory
        asked,     // freed; a thread asks the driver about the block, or the block is in a batch with events
        held,      // freed; a graph uses the memory
        refused,   // freed; the driver has refused to take the segment back
    };

    HostSegment *segment = nullptr;
    Address address = 0;
    std::size_t size = 0;
    std::size_t requested = 0; // before rounding; 0 if neither the program nor work uses the block
    StackId stack = 0;         // of the allocation
    State state = State::free;
    unsigned holds = 0;        // of graphs
    bool released = false;     // by a graph, after the driver was asked: the graph may have used the memory meanwhile
    HostBlock *next = nullptr; // in a HostBlockList
    FreeHostBlocks::node_type node; // the node of the set of free blocks while the block is in none

    bool is_segment() const { return size == segment->size; }
};

inline bool SmallerHostBlock::operator()(const HostBlock *left, const HostBlock *right) const {
    return left->size != right->size ? left->size < right->size : left->address < right->address;
}

// Blocks in a list, which needs no memory of its own.
class HostBlockList {
public:
    bool empty() const { return first_ == nullptr; }
    HostBlock *first() const { return first_; }
    void add(HostBlock *block) {
        block->next = first_;
        first_ = block;
        if (last_ == nullptr)
            last_ = block;
    }
    void add_last(HostBlock *block) {
        (last_ == nullptr ? first_ : last_->next) = block;
        last_ = block;
    }
    HostBlock *take() {
        HostBlock *const block = first_;
        first_ = block->next;
        if (first_ == nullptr)
            last_ = nullptr;
        block->next = nullptr;
        return block;
    }
    template <typename Visit> void each(Visit visit) const {
        for (HostBlock *block = first_; block != nullptr; block = block->next)
            visit(*block);
    }
    void swap(HostBlockList &other) {
        std::swap(first_, other.first_);
        std::swap(last_, other.last_);
    }

private:
    HostBlock *first_ = nullptr, *last_ = nullptr;
};

} // namespace tcuda
