// Blocks of device memory, the segments that they are parts of, and the free blocks of one stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "allocator/block_tree.hpp"
#include "driver/driver.hpp"
#include "allocator/work.hpp"

namespace tcuda {

struct Heap;
struct Pool;
struct Segment;
class ExternalSource;
class Tracker;

// A Python stack that the history has noted; 0 for none, 1 for that of a thread that runs no Python code.
using StackId = std::uint32_t;
constexpr StackId stack_without_frames = 1;

// The smallest size that is handed out, and the alignment of every address.
constexpr std::size_t unit = 512;

// A range of a segment that is handed out, free, or without physical memory.
struct Block {
    enum class State : std::uint8_t { unmapped, free, recent, allocated, awaiting_free };

    Address address = 0;
    std::size_t size = 0;      // a multiple of unit
    std::size_t requested = 0; // what the caller asked for
    Segment *segment = nullptr;
    Block *before = nullptr, *after = nullptr; // neighbours in the segment
    Block *left = nullptr, *right = nullptr;   // in the list, or the tree, of free blocks or of holes
    State state = State::free;
    bool is_large = false;
    bool oversize = false;       // counted as such, by the settings of then
    bool stream_is_gone = false; // `stream` is destroyed, and its handle may mean another one by now
    StackId stack = 0;
    std::uint64_t freed_at = 0;    // when it was last freed, by the allocator's count of frees
    Stream stream = 0;             // on which it was allocated
    Pool *pool = nullptr;
    ExternalSource *source = nullptr; // null for blocks of segments
    void *token = nullptr;            // the source's own name for it
    std::unique_ptr<std::list<Wait>> uses; // by streams beside its own
    std::size_t waits = 0;                 // how many of them it waits for, once it is freed
    CaptureId capture = 0;                 // during which it was allocated
    std::size_t holds = 0;                 // graphs and captures that need its contents: it is not freed before they let go

    bool is_free() const { return state == State::free; }
    bool is_mapped() const { return state != State::unmapped; }
};

// Memory that the driver, or the library of a pool, has given; or a range of addresses that is mapped bit by bit.
struct Segment {
    Heap *heap = nullptr;
    Address address = 0;
    std::size_t size = 0;
    bool expandable = false;
    bool oversize = false; // counted as such, by the settings of then
    StackId stack = 0;
    void *token = nullptr; // the name that the library of the pool has for it
    Block *first = nullptr;
    struct Mapping {
        std::size_t size;
        Physical physical;
    };
    using Mappings = std::map<Address, Mapping>;
    Mappings mappings;
};

struct ByAddress {
    bool operator()(const Block *left, const Block *right) const { return left->address < right->address; }
};

struct BySize {
    bool operator()(const Block *left, const Block *right) const {
        return left->size != right->size ? left->size < right->size : left->address < right->address;
    }
};

// Free blocks, to be found by size. Below 2 MiB there is a list for each size and a bitmap of the lists that have
// members, so that the best fit is found, taken and put back in constant time; the few larger ones are in a tree. Nothing
// here allocates: a free never fails.
class FreeBlocks {
public:
    void insert(Block *block) {
        bytes_ += block->size;
        if (block->size >= listed) {
            tree_.insert(block);
            return;
        }
        const std::size_t list = block->size / unit;
        block->right = lists_[list];
        block->left = nullptr;
        if (block->right != nullptr)
            block->right->left = block;
        lists_[list] = block;
        words_[list / 64] |= bit(list);
        summary_ |= bit(list / 64);
    }

    void erase(Block *block) {
        bytes_ -= block->size;
        if (block->size >= listed) {
            tree_.erase(block);
            return;
        }
        const std::size_t list = block->size / unit;
        if (block->right != nullptr)
            block->right->left = block->left;
        if (block->left != nullptr)
            block->left->right = block->right;
        else
            lists_[list] = block->right;
        block->left = block->right = nullptr;
        if (lists_[list] == nullptr) {
            words_[list / 64] &= ~bit(list);
            if (words_[list / 64] == 0)
                summary_ &= ~bit(list / 64);
        }
    }

    // The smallest block of at least `size` bytes, or null.
    Block *best_fit(std::size_t size) const {
        if (size < listed) {
            const std::size_t list = size / unit;
            const std::uint64_t here = words_[list / 64] >> (list % 64);
            if (here != 0)
                return lists_[list + lowest(here)];
            const std::uint64_t above = list / 64 == 63 ? 0 : summary_ >> (list / 64 + 1);
            if (above != 0) {
                const std::size_t word = list / 64 + 1 + lowest(above);
                return lists_[word * 64 + lowest(words_[word])];
            }
        }
        return tree_.first([size](const Block *block) { return block->size >= size; });
    }

    std::size_t bytes() const { return bytes_; }

    template <typename Visit> void each(Visit visit) const {
        for (std::uint64_t words = summary_; words != 0; words &= words - 1) {
            const std::size_t word = lowest(words);
            for (std::uint64_t lists = words_[word]; lists != 0; lists &= lists - 1)
                for (Block *block = lists_[word * 64 + lowest(lists)]; block != nullptr; block = block->right)
                    visit(block);
        }
        tree_.each(visit);
    }

private:
    static constexpr std::size_t listed = std::size_t(2) << 20;
    static std::uint64_t bit(std::size_t number) { return std::uint64_t(1) << (number % 64); }
    static std::size_t lowest(std::uint64_t word) { return static_cast<std::size_t>(__builtin_ctzll(word)); }

    std::array<Block *, listed / unit> lists_{};
    std::array<std::uint64_t, listed / unit / 64> words_{};
    std::uint64_t summary_ = 0;
    BlockTree<Block, BySize> tree_;
    std::size_t bytes_ = 0;
};

// What is free for one stream, one pool, and small or large requests.
struct Heap {
    Pool *pool = nullptr;
    Stream stream = 0;
    bool is_large = false;
    FreeBlocks free;
    BlockTree<Block, ByAddress> holes; // unmapped ranges of the expandable segment
    Block *recent = nullptr; // freed last: nothing is done about it until it is known that it is not taken at once
    Segment *expandable = nullptr;
    std::size_t mapped = 0;    // bytes of it that have physical memory
    std::size_t segments = 0;  // others that it has
    std::shared_ptr<Work> end; // of a stream that is destroyed: its last work; the handle may mean another one by now
    int pins = 0;              // threads that come back to the heap when they have the lock again
};

} // namespace tcuda
