#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "driver/driver.hpp"
#include "memory/allocator/work.hpp"
#include "memory/records/scope.hpp"
#include "memory/records/stack_id.hpp"

namespace tcuda {

class ExternalSource;
struct Pool;
struct Segment;
struct StreamLife;

// The smallest size of a block, and the alignment of every address.
constexpr std::size_t unit = 512;

// A range of device memory: a part of a segment, or memory of an external source.
struct Block {
    // `unmapped`: a range of addresses without physical memory. `elsewhere`: the physical memory is in use at other
    // addresses, which belong to a window. `recent`: freed last in its heap and not merged yet.
    enum class State : std::uint8_t { unmapped, elsewhere, free, recent, allocated, awaiting_free };

    Address address = 0;
    std::size_t size = 0;                      // a multiple of the unit
    std::size_t requested = 0;                 // the size that the caller asked for
    Segment *segment = nullptr;                // null for memory of an external source
    Block *before = nullptr, *after = nullptr; // neighbours in the segment
    Block *left = nullptr, *right = nullptr;   // links in the list, or the tree, that the block is in
    State state = State::free;
    bool is_large = false;
    bool oversize = false; // counted as oversize, by the settings at that time
    StackId stack = 0;
    const Scope *scope = nullptr; // in which the block was allocated last
    std::uint64_t freed_at = 0; // the allocator's count of frees at the last free of the block
    Stream stream = 0;          // on which the block was allocated
    Pool *pool = nullptr;
    ExternalSource *source = nullptr;      // null for blocks of segments
    void *token = nullptr;                 // the external source's own name for the memory
    std::unique_ptr<std::list<Wait>> uses; // by other streams than its own
    std::size_t waits = 0;                 // the number of uses that a freed block still waits for
    CaptureId capture = 0;                 // the capture in which the block was allocated
    std::size_t holds = 0;                 // the number of graphs and captures that need the contents of the block
    StreamLife *life = nullptr;            // of `stream`; null for blocks of segments, whose heaps know it

    bool is_free() const { return state == State::free; }
    bool is_hole() const { return state == State::unmapped; }
    // Whether the physical memory at the addresses is used, or free, at these addresses.
    bool is_here() const { return state > State::elsewhere; }
};

struct ByAddress {
    bool operator()(const Block *left, const Block *right) const { return left->address < right->address; }
};

struct BySize {
    bool operator()(const Block *left, const Block *right) const {
        return left->size != right->size ? left->size < right->size : left->address < right->address;
    }
};

} // namespace tcuda
