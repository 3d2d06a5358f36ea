#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/block_splitter.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/allocator/window.hpp"
#include "memory/records/history.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// The windows of the heaps of large requests. A window makes one free block of free memory that lies apart, without new
// memory. Nothing has to be waited for: the work that uses the window runs on the stream of the heap, after the work
// that used the memory at home.
//
// A window is kept when its block is freed, so that a program that repeats itself maps nothing again. The oldest window
// is opened whose pieces have enough free memory for a request. By this rule, a repetition opens the same windows as
// the repetition before: every younger window came later in that repetition, too.
class Windows {
public:
    // The most windows of a heap, and the most pieces of a window. Recorded programs need far less. The bounds limit
    // the tables of the driver and the time of a search.
    static constexpr std::size_t most_windows = 512, most_pieces = 128;

    Windows(int device, Driver &driver, BlockStore &store, BlockSplitter &splitter, Statistics &statistics,
            History &history)
        : device_(device), driver_(driver), store_(store), splitter_(splitter), statistics_(statistics),
          history_(history) {}
    Windows(const Windows &) = delete;
    Windows &operator=(const Windows &) = delete;

    // Opens a kept window for a request of `size` bytes. Calls no driver. Whether there was one.
    bool open_kept(Heap &heap, std::size_t size);

    // Makes a window for a request of `size` bytes, and opens the window. False if the free memory of the heap is not
    // enough, if the heap has too many windows, or if the driver or the host has no memory for the window.
    bool make(Heap &heap, std::size_t size);

    // The bytes of the largest window that make() could make, without regard to `most_pieces`.
    std::size_t largest(const Heap &heap);

    // Closes a window that is free as a whole. `block` is the block of the window. The memory becomes free at home.
    // Needs no host memory, and cannot fail.
    void close(Heap &heap, Block *block);

    // Whether make() refuses a window because the heap has too many.
    static bool are_full(const Heap &heap) { return heap.windows.size() >= most_windows; }

    // Unmaps the closed half of the windows that was opened least recently, as far as no work up to `settled` is left.
    void unmap_stale(Heap &heap, std::uint64_t settled);

    // Unmaps the windows that show a piece whose home is in a range. Returns a status. A window that the driver fails
    // to unmap stays, and so do its pieces.
    int unmap(Heap &heap, Address from, Address to);

    // Takes the memory of all windows away, and keeps their addresses. Goes on after a failure, and returns the first
    // one.
    int sleep(Heap &heap);
    // Maps the memory of the homes at the addresses of the windows. Returns a status.
    int wake(Heap &heap);

    // Offers the driver again the windows and the addresses that it failed to take back.
    void retry();

    // Unmaps all windows. Called when the ledger ends.
    void free_everything(Heap &heap);

private:
    // A free block of the expandable segment, and the whole pieces in the block. The block may begin with the end of a
    // piece, and end with the start of a piece.
    struct Run {
        Address begin, end;
        Block *block;
        Address first = 0, last = 0; // the start and the end of the whole pieces

        std::size_t size() const { return last - first; }
    };
    // A free part at the start or at the end of a piece that is in use.
    struct Part {
        Address piece = 0;
        std::size_t size = 0;
    };
    // The free memory of a heap of which a window can be made.
    struct Found {
        std::size_t whole = 0; // the bytes of the pieces that are free as a whole
        Part end, begin; // the longest free end and the longest free begin of a piece

        std::size_t size() const { return end.size + whole + begin.size; }
    };
    using Pieces = std::vector<Segment::Mappings::iterator>;

    void find_runs(const Heap &heap);
    Found find_pieces(const Heap &heap);
    Run *run_around(Address begin, Address end);
    bool choose(Heap &heap, std::size_t size, Pieces &pieces);
    bool open(Heap &heap, Window &window, std::size_t size);
    int map(Window &window, const Pieces &pieces);
    int unmap(Window &window);
    void let_go(std::unique_ptr<Window> window);
    int unmap(Segment::Mappings::value_type &mapping);

    const int device_;
    Driver &driver_;
    BlockStore &store_;
    BlockSplitter &splitter_;
    Statistics &statistics_;
    History &history_;
    std::vector<Run> runs_; // the result of find_runs(), in ascending order
    std::vector<std::unique_ptr<Window>> unreleased_; // the driver failed to take their addresses back
};

} // namespace tcuda
