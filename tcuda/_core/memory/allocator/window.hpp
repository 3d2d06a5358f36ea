#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/allocator/block.hpp"
#include "memory/allocator/segment.hpp"

namespace tcuda {

// Pieces of physical memory of a heap at a second range of addresses, side by side. Their first addresses are their
// homes. An open window uses the end of its first piece, the start of its last piece, and the pieces between as a
// whole. This memory is then used through the window only: blocks with the state `elsewhere` stand at home, and the
// segment of the window has blocks. The segment of a closed window has none.
struct Window {
    // Homes without a gap between them.
    struct Range {
        Address begin, end;
        Block *elsewhere = nullptr; // while the window is open: the part of the range that the window uses
    };

    Segment segment; // the part of the addresses that the open window uses; the mappings are those of the window
    Address address = 0;
    std::size_t size = 0;
    std::vector<Range> ranges;   // the homes of the pieces, at least two, in the order of the mappings
    std::uint64_t opened_at = 0; // the heap's count of opened windows when the window was opened last
    std::uint64_t closed_at = 0; // the allocator's count of frees when the window was closed last
    bool open = false;
    bool broken = false; // the driver failed to unmap the window, which is never opened again
};

} // namespace tcuda
