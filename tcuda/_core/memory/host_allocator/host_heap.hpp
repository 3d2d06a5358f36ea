// The segments of page-locked host memory, divided into blocks.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "memory/host_allocator/host_block.hpp"
#include "memory/host_allocator/host_sizes.hpp"

namespace tcuda {

// Finds free blocks by size, splits them, and joins them again. The heap calls no driver. A function that throws has
// changed nothing.
//
// A small block that becomes free is kept as it is, because the program often wants the same size again. Kept blocks
// are joined with the free blocks beside them when no free block fits. So each function takes logarithmic time for each
// block that was freed.
class HostHeap {
public:
    HostHeap() { spare_.reserve(most_spare); }

    // The smallest free block of at least `size` bytes, as an allocated block; null if there is none. A small block is
    // cut to the size. A large block stays whole and is at most an eighth too large.
    // The block begins at a multiple of `alignment`, which is host_unit or host_page; with host_page, so is `size`.
    HostBlock *take(std::size_t size, std::size_t alignment);

    // Whether take() has a block of just this size, which the program had before.
    bool has_kept(std::size_t size) const { return is_small_host_size(size) && !kept_[host_size_number(size)].empty(); }

    // As take(), and cuts a large block to the size, too. A segment that is cut cannot be given back to the driver
    // while the program has a part. So only blocks that are parts already are cut, unless `cuts_whole`.
    HostBlock *cut(std::size_t size, std::size_t alignment, bool cuts_whole);

    // Adds a segment, all of which becomes one free block.
    void add(const HostSegment &segment);

    // Makes a block free.
    void give(HostBlock *block) noexcept;

    // Joins the kept blocks with the free blocks beside them.
    void join_kept() noexcept;

    // The bytes of all free blocks.
    std::size_t free_bytes() const { return free_bytes_; }

    // The block that contains `address`; null if none does.
    HostBlock *find(Address address) const;

    // The largest free block that is a whole segment; null if there is none.
    HostBlock *idle_segment();

    // A segment that the heap does not know any more, with its only block. The end of the object forgets the segment.
    struct Withdrawn {
        std::map<Address, HostSegment>::node_type segment;
        HostBlocks::node_type block;
    };
    // Takes a whole segment out of the heap before the segment goes back to the driver: as soon as the driver has the
    // memory, another thread may get new memory at the same address. restore() undoes that: the block is then in no set
    // of free blocks, until give().
    Withdrawn withdraw(HostBlock *block) noexcept;
    HostBlock *restore(Withdrawn withdrawn) noexcept;

    template <typename Visit> void each_segment(Visit visit) const {
        for (const auto &[address, segment] : segments_)
            visit(segment);
    }
    template <typename Visit> void each_block(Visit visit) const {
        for (const auto &[address, block] : blocks_)
            visit(*block);
    }

private:
    FreeHostBlocks &free_of(const HostBlock &block) { return block.segment->small ? small_ : large_; }
    enum class Cuts { small, parts, all };
    HostBlock *take_fitting(std::size_t size, std::size_t alignment, Cuts cuts = Cuts::small);
    FreeHostBlocks::iterator find_fitting(FreeHostBlocks &free, std::size_t size, std::size_t alignment);
    void put_back(HostBlock *block) noexcept;
    HostBlock *insert(HostSegment *segment, Address address, std::size_t size);
    void take_out(HostBlock *block) noexcept;
    void join(HostBlock *left, HostBlock *right) noexcept;

    static constexpr std::size_t most_spare = 64;

    std::map<Address, HostSegment> segments_;
    HostBlocks blocks_;
    std::vector<HostBlocks::node_type> spare_; // of joined blocks, because a new block takes three allocations
    FreeHostBlocks small_, large_;
    std::array<HostBlockList, host_sizes> kept_; // by the number of the size
    bool any_kept_ = false;
    std::size_t free_bytes_ = 0;
};

} // namespace tcuda
