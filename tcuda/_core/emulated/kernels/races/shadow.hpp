// The shadow of memory: the last accesses of each byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulated/kernels/races/access_stamp.hpp"
#include "emulated/kernels/races/pool.hpp"

namespace tcuda {

// An access, or one access of each of several lanes of a warp with the same stamp but for the thread.
struct ShadowMember {
    AccessStamp stamp;
    std::uint32_t lanes; // 0 for one access
};

// A few accesses of which none comes before another.
struct ShadowGroup {
    static constexpr unsigned most = 4;

    AccessStamp stamps[most]; // those in use come first, and the others are 0
    std::uint32_t lanes[most];
};

// What is known of some bytes: the last accesses that write, and the accesses since then that read. Each of the two is
// 0, a stamp, or the reference to a group.
struct ShadowCell {
    std::uint64_t written, read;
};

// Memory for the cells of `unit` bytes each. The cell of a unit whose bytes differ refers to a cell for each byte.
// Takes memory of the host, up to 16 bytes for each byte of the kernel's memory that was used in whole units.
class Shadow {
public:
    static constexpr unsigned unit = 4;
    static constexpr unsigned page_shift = 12;
    static constexpr unsigned page_cells = (1u << page_shift) / unit;

    // The cells of the page with the number.
    ShadowCell *page(std::uintptr_t number) {
        const Near &near = near_[number % nears];
        return near.number == number ? near.cells : find(number);
    }

    // The same, if the page was used lately; or else null.
    ShadowCell *near_page(std::uintptr_t number) const {
        const Near &near = near_[number % nears];
        return near.number == number ? near.cells : nullptr;
    }

    // References to groups and cells

    static bool is_reference(std::uint64_t value) { return value >> 63 != 0; }
    static bool is_split(const ShadowCell &cell) { return cell.written >> 62 == 3; }
    // How little a further read changes: a group of two blocks has a rival for every thread of the grid, and a group of
    // two warps of a block has a rival for every thread of the block until the next barrier.
    enum class Rivals : unsigned { none, of_block, of_grid };
    static Rivals rivals(std::uint64_t reference) { return static_cast<Rivals>(reference >> 60 & 3); }
    static unsigned phase(std::uint64_t reference) {
        return static_cast<unsigned>(reference >> 32) & ((1u << stamps::phase_bits) - 1);
    }
    // Whether all accesses of the group are of one block, none of them after the phase: for reads only.
    static bool is_of_one_block(std::uint64_t reference) { return (reference >> 62 & 1) != 0; }
    static std::uint64_t reference(std::uint32_t number, Rivals rivals, unsigned phase, bool of_one_block) {
        return std::uint64_t(1) << 63 | std::uint64_t(of_one_block) << 62 | std::uint64_t(rivals) << 60 |
               std::uint64_t(phase) << 32 | number;
    }
    ShadowGroup &group(std::uint64_t reference) { return groups_[static_cast<std::uint32_t>(reference)]; }
    const ShadowGroup &group(std::uint64_t reference) const { return groups_[static_cast<std::uint32_t>(reference)]; }
    // The number of a group with any contents; free_group() takes no memory, and may return no_group.
    static constexpr std::uint32_t no_group = Pool<ShadowGroup>::none;
    std::uint32_t new_group() { return groups_.take(); }
    std::uint32_t free_group() { return groups_.take_again(); }
    // Gives back what the value refers to.
    void drop(std::uint64_t value) {
        if (is_reference(value))
            groups_.give_back(static_cast<std::uint32_t>(value));
    }
    ShadowCell *parts(const ShadowCell &cell) { return parts_[static_cast<std::uint32_t>(cell.written)].cells; }
    // Makes the cells of the bytes of the cell.
    void split(ShadowCell &cell);
    // Undoes split(), if all bytes have the same single stamps.
    void join(ShadowCell &cell);

private:
    static constexpr unsigned nears = 4096;

    struct Near {
        std::uintptr_t number = ~std::uintptr_t(0);
        ShadowCell *cells = nullptr;
    };

    struct Parts {
        ShadowCell cells[unit];
    };

    // Cells that come from the system at once, which is the most expensive part of their use.
    class Slab {
    public:
        explicit Slab(std::size_t pages);
        ~Slab();
        Slab(const Slab &) = delete;
        Slab &operator=(const Slab &) = delete;
        ShadowCell *cells() const { return static_cast<ShadowCell *>(memory_); }

    private:
        const std::size_t bytes_;
        void *memory_;
    };

    ShadowCell *find(std::uintptr_t number);
    std::uint64_t copied(std::uint64_t value);

    std::unique_ptr<Near[]> near_{new Near[nears]};
    std::unordered_map<std::uintptr_t, ShadowCell *> pages_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    ShadowCell *next_ = nullptr; // the cells of the next page
    std::size_t left_ = 0;       // the pages that the last slab has left
    Pool<ShadowGroup> groups_;
    Pool<Parts> parts_;
};

} // namespace tcuda
