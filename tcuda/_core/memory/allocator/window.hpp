#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/allocator/block.hpp"
#include "memory/allocator/segment.hpp"

namespace tcuda {

// Pieces of physical memory of a heap at a second range of addresses, side by side. Their first addresses are their
// homes. The memory is used either through the window, which is then open, or at home. While the window is open, blocks
// with the state `elsewhere` stand at home, and the segment of the window has blocks. Otherwise the segment has none.
struct Window {
    // Homes without a gap between them.
    struct Range {
        Address begin, end;
        Block *elsewhere = nullptr; // while the window is open
    };

    Segment segment; // its mappings are the mappings of the window
    std::vector<Range> ranges;   // the homes of the pieces, in the order of the mappings
    std::uint64_t opened_at = 0; // the heap's count of opened windows when the window was opened last
    std::uint64_t closed_at = 0; // the allocator's count of frees when the window was closed last
    bool open = false;
    bool broken = false; // the driver failed to unmap the window, which is never opened again
};

} // namespace tcuda
