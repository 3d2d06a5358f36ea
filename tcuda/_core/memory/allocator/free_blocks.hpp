#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/allocator/block.hpp"
#include "memory/allocator/block_tree.hpp"
#include "memory/allocator/sizes.hpp"

namespace tcuda {

// Free blocks, found by size. Each size below 2 MiB has a tree of its own, and a bitmap tells which trees have members:
// the search for the best fit takes the same time beside any number of free blocks. The few larger blocks are in one
// tree. Among blocks of one size, the one with the lowest address is found, as in torch: the free memory behind the
// live blocks then stays in one piece. No function here allocates host memory, so that a free never fails.
class FreeBlocks {
public:
    void insert(Block *block) {
        bytes_ += block->size;
        if (block->size >= sorted) {
            larger_.insert(block);
            return;
        }
        const std::size_t place = block->size / unit;
        of_size_[place].insert(block);
        words_[place / 64] |= bit(place);
        summary_ |= bit(place / 64);
    }

    void erase(Block *block) {
        bytes_ -= block->size;
        if (block->size >= sorted) {
            larger_.erase(block);
            return;
        }
        const std::size_t place = block->size / unit;
        of_size_[place].erase(block);
        if (of_size_[place].empty()) {
            words_[place / 64] &= ~bit(place);
            if (words_[place / 64] == 0)
                summary_ &= ~bit(place / 64);
        }
    }

    // The smallest block of at least `size` bytes, or null.
    Block *best_fit(std::size_t size) const {
        if (size < sorted) {
            const std::size_t place = size / unit;
            const std::uint64_t here = words_[place / 64] >> (place % 64);
            if (here != 0)
                return of_size_[place + lowest(here)].first(any);
            const std::uint64_t above = place / 64 == 63 ? 0 : summary_ >> (place / 64 + 1);
            if (above != 0) {
                const std::size_t word = place / 64 + 1 + lowest(above);
                return of_size_[word * 64 + lowest(words_[word])].first(any);
            }
        }
        return larger_.first([size](const Block *block) { return block->size >= size; });
    }

    // The block that best_fit() would find if the blocks up to the result of best_fit() were gone, or null.
    Block *next_fit(const Block *block) const {
        if (block->size >= sorted)
            return larger_.first([block](const Block *other) { return BySize()(block, other); });
        Block *next =
            of_size_[block->size / unit].first([block](const Block *other) { return ByAddress()(block, other); });
        return next != nullptr ? next : best_fit(block->size + unit);
    }

    std::size_t bytes() const { return bytes_; }

    // The blocks of at least 2 MiB: the first block that is `wanted`, or null; and all of them. The driver gives and
    // takes no less than 2 MiB, so no smaller block can go back.
    template <typename Wanted> Block *find_large(Wanted wanted) const { return larger_.find(wanted); }
    template <typename Visit> void each_large(Visit visit) const { larger_.each(visit); }

    template <typename Visit> void each(Visit visit) const { each_from(0, visit); }

    // The blocks of at least `size` bytes. The size is a multiple of 64 units, and less than 2 MiB.
    template <typename Visit> void each_from(std::size_t size, Visit visit) const {
        const std::size_t first = size / unit / 64;
        for (std::uint64_t words = summary_ >> first << first; words != 0; words &= words - 1) {
            const std::size_t word = lowest(words);
            for (std::uint64_t places = words_[word]; places != 0; places &= places - 1)
                of_size_[word * 64 + lowest(places)].each(visit);
        }
        larger_.each(visit);
    }

private:
    static constexpr std::size_t sorted = small_segment; // blocks from this size on are in the tree by size
    static constexpr auto any = [](const Block *) { return true; };
    static std::uint64_t bit(std::size_t number) { return std::uint64_t(1) << (number % 64); }
    static std::size_t lowest(std::uint64_t word) { return static_cast<std::size_t>(__builtin_ctzll(word)); }

    std::array<BlockTree<Block, ByAddress>, sorted / unit> of_size_{};
    std::array<std::uint64_t, sorted / unit / 64> words_{};
    std::uint64_t summary_ = 0;
    BlockTree<Block, BySize> larger_;
    std::size_t bytes_ = 0;
};

} // namespace tcuda
