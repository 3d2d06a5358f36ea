#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/allocator/block.hpp"
#include "memory/allocator/block_tree.hpp"
#include "memory/allocator/sizes.hpp"

namespace tcuda {

// Free blocks, found by size. Each size below 2 MiB has a list, and a bitmap tells which lists have members: finding,
// taking and adding the best fit take constant time. The few larger blocks are in a tree. No function here allocates
// host memory, so that a free never fails.
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

    // The block that best_fit() would find if the blocks up to the result of best_fit() were gone, or null.
    Block *next_fit(const Block *block) const {
        if (block->size >= listed)
            return tree_.first([block](const Block *other) { return BySize()(block, other); });
        return block->right != nullptr ? block->right : best_fit(block->size + unit);
    }

    std::size_t bytes() const { return bytes_; }

    // The blocks of at least 2 MiB: the first block that is `wanted`, or null; and all of them. The driver gives and
    // takes no less than 2 MiB, so no smaller block can go back.
    template <typename Wanted> Block *find_large(Wanted wanted) const { return tree_.find(wanted); }
    template <typename Visit> void each_large(Visit visit) const { tree_.each(visit); }

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
    static constexpr std::size_t listed = small_segment;
    static std::uint64_t bit(std::size_t number) { return std::uint64_t(1) << (number % 64); }
    static std::size_t lowest(std::uint64_t word) { return static_cast<std::size_t>(__builtin_ctzll(word)); }

    std::array<Block *, listed / unit> lists_{};
    std::array<std::uint64_t, listed / unit / 64> words_{};
    std::uint64_t summary_ = 0;
    BlockTree<Block, BySize> tree_;
    std::size_t bytes_ = 0;
};

} // namespace tcuda
