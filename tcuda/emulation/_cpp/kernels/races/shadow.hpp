// The memory of the shadow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"
#include "emulation/_cpp/kernels/races/pool_memory.hpp"
#include "emulation/_cpp/kernels/races/reserved_memory.hpp"
#include <tcuda_races.h>

namespace tcuda {

// An access, or one access of each of several lanes of a warp with the same stamp but for the thread.
struct ShadowMember {
    AccessStamp stamp;
    std::uint32_t lanes; // 0 for one access
};

// Memory for the cells of `unit` bytes each. The cell of a unit whose bytes differ refers to a cell for each byte.
class Shadow {
public:
    static constexpr unsigned unit = shadow_unit;

    // A part of the memory of the kernel, whose cells lie side by side.
    class Region {
    public:
        explicit Region(abi::Range range);

        const abi::Range &range() const { return range_; }
        // The address of the cell of a unit is 4 times the address of the unit plus this number.
        std::uintptr_t cells() const { return cells_; }
        ShadowCell &operator[](std::uintptr_t address) const { return *abi::RaceNotes::cell(cells_, address); }
        // Prepares the cells of a part for use. A second call for the same part costs little.
        void expect_use(abi::Range part) const;

    private:
        static constexpr std::uintptr_t bytes_of_cells = sizeof(ShadowCell) / unit; // for each byte

        const abi::Range range_;
        const ReservedMemory memory_;
        const std::uintptr_t cells_;
        mutable std::vector<std::uintptr_t> expected_; // the beginnings of large parts
    };

    // Keeps its pools in `notes`. `library` is the memory of the module.
    Shadow(abi::RaceNotes &notes, abi::Range library);

    // The region of an address. Takes memory.
    const Region &region(std::uintptr_t address) {
        const abi::Range &range = last_->range();
        return address - range.begin < range.end - range.begin ? *last_ : find(address);
    }
    const Region &of_library() const { return regions_.front(); }
    ShadowCell &cell(std::uintptr_t address) { return region(address)[address]; }

    const ShadowGroup &group(AccessStamp reference) const { return notes_.groups[values::number(reference)]; }
    ShadowGroup &group(AccessStamp reference) { return notes_.groups[values::number(reference)]; }
    // The number of a group with any contents.
    unsigned new_group() { return groups_.take(); }
    // Gives back what the value refers to.
    void drop(AccessStamp value) { notes_.drop(value); }
    void clear(ShadowCell &cell);
    ShadowCell *parts(const ShadowCell &cell) { return notes_.parts[static_cast<unsigned>(cell.written)].cells; }
    // Makes the cells of the bytes of the cell.
    void split(ShadowCell &cell);
    // Undoes split(), if all bytes have the same single stamps.
    void join(ShadowCell &cell);

private:
    static constexpr unsigned region_shift = 28;

    const Region &find(std::uintptr_t address);
    AccessStamp copied(AccessStamp value);

    abi::RaceNotes &notes_;
    std::deque<Region> regions_; // the library comes first
    const Region *last_;
    PoolMemory<ShadowGroup> groups_;
    PoolMemory<ShadowParts> parts_;
};

} // namespace tcuda
