#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block.hpp"
#include "memory/allocator/block_splitter.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/expandable_segments.hpp"
#include "memory/allocator/external_source.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/allocator/room.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/allocator/size_policy.hpp"
#include "memory/allocator/stream_lives.hpp"
#include "memory/records/history.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// A segment that goes back to its library once the lock is given back.
struct ReturnedSegment {
    std::shared_ptr<ExternalSource> library;
    Address address;
    std::size_t size;
    Stream stream;
    void *token;
};

// The native source of memory: keeps the freed memory of a stream for later allocations on that stream.
//
// The policy is torch's. Sizes are multiples of 512 bytes. Small requests, of up to 1 MiB, and large requests have
// separate heaps. A request gets the best fit among the free blocks of its heap; blocks are split, and merged when they
// are freed. New memory is a segment of 2 MiB, of 20 MiB, or of the size of a larger request; with expandable segments,
// new memory is mapped behind the memory that the heap has, in one piece as long as the request needs it.
//
// The lock of the device's ledger guards the allocator. Memory that the driver fails to take back is not handed out,
// and is offered to the driver again by retry().
class CachingAllocator {
public:
    CachingAllocator(int device, Driver &driver, const Settings &settings, StreamLives &lives, BlockStore &store,
                     Statistics &statistics, History &history)
        : device_(device), driver_(driver), settings_(settings), sizes_(settings), lives_(lives), store_(store),
          statistics_(statistics), history_(history), splitter_(store, statistics),
          expandable_(device, driver, settings, store, splitter_, maybe_unneeded_, statistics, history) {}
    CachingAllocator(const CachingAllocator &) = delete;
    CachingAllocator &operator=(const CachingAllocator &) = delete;

    // Allocating and freeing

    // The size of the block for a request: a multiple of the unit; 0 if the request is too large for any device.
    std::size_t rounded(std::size_t size) const { return sizes_.rounded(size); }
    void set_padding(std::size_t padding) { sizes_.set_padding(padding); }

    // A free block of a rounded size from the heap of the stream, or null. May throw std::bad_alloc.
    Block *take(Pool &pool, Stream stream, std::size_t size);

    // Makes a block free, and merges it with its neighbours. A small block is merged only when the next block comes to
    // the heap, or a block of another size is taken: a program that makes and drops arrays of one size merges nothing.
    void give(Block *block);

    // Merges the block that came last to a heap. Called before anything reads the free blocks or the inactive splits.
    void merge_recent(Heap &heap);
    // The same for all heaps.
    void merge_recent() {
        unmerged_.each([&](Heap &heap) {
            unmerged_.remove(heap);
            merge_recent(heap);
        });
    }

    // The number of calls of give(). Memory that is freed later is not `settled` in release().
    std::uint64_t frees() const { return frees_; }

    // The bytes that take() has handed out so far.
    std::uint64_t handed_out() const { return handed_out_; }

    // Growing

    // Makes a free block for a request out of free memory of the heap that lies apart. The first function calls no
    // driver. Whether take() finds a block now.
    bool open_kept_window(Pool &pool, Stream stream, std::size_t size);
    bool make_window(Pool &pool, Stream stream, std::size_t size);

    // The heap of a request if the heap has so many windows that make_window() makes no more; null otherwise.
    Heap *heap_with_too_many_windows(Pool &pool, Stream stream, std::size_t size);

    // Unmaps windows that were not opened for long and that no work after `settled` used.
    void unmap_stale_windows(Heap &heap, std::uint64_t settled) { expandable_.unmap_stale_windows(heap, settled); }

    // Takes memory for a request from the driver, as much as there is room for. Returns a status. After success, take()
    // finds a block.
    int grow(Pool &pool, Stream stream, std::size_t size, const Room &room, StackId stack);

    // Adds a segment for a request from the library of the pool. After std::bad_alloc nothing has changed.
    void add_segment(Pool &pool, Stream stream, bool is_large, Address address, std::size_t size, void *token,
                     StackId stack);

    // Whether any segment has one of these addresses.
    bool overlaps(Address address, std::size_t size) const;

    // Giving memory back

    // Whether release() could give any memory of the heap back that was freed up to `settled`.
    bool has_releasable(const Heap &heap, std::uint64_t settled) const;

    // The free memory of a heap that was freed up to the count `settled`. No stream works on this memory.
    struct Settled {
        Heap *heap;
        std::uint64_t settled;
    };

    // Gives settled memory back, the oldest first, until `enough` bytes are given back. Returns the number of bytes.
    // Adds the segments of libraries to `returned`. The first failure of the driver ends the function, and becomes
    // `status`.
    std::size_t release(const std::vector<Settled> &heaps, std::size_t enough, std::vector<ReturnedSegment> &returned,
                        int *status);

    // Offers the driver the memory again that it failed to take back.
    void retry() { expandable_.retry(); }

    // See ExpandableSegments. The heaps have no other segments.
    int sleep(const std::vector<Heap *> &heaps, bool *asleep) { return expandable_.sleep(heaps, asleep); }
    int wake(const std::vector<Heap *> &heaps) { return expandable_.wake(heaps); }

    // Tells an observer that no work uses the memory of a pool, in which nothing is live.
    void forget_uses(const Pool &pool) noexcept;

    // Frees all segments, also those with live blocks. Called when the ledger ends.
    void free_everything();

    // Heaps

    // Whether a heap has no memory. An empty heap may have addresses.
    static bool is_empty(const Heap &heap);

    // Removes an empty heap from its pool.
    void remove(Heap &heap);

    // Removes the empty heaps that are not needed and have no pins. If `is_needed` has said once that a heap is needed,
    // the heap stays until it has lost memory again, or its stream is destroyed.
    template <typename IsNeeded> void remove_unneeded(IsNeeded is_needed) {
        maybe_unneeded_.each([&](Heap &heap) {
            if (!is_empty(heap) || is_needed(heap))
                maybe_unneeded_.remove(heap);
            else if (heap.pins == 0)
                remove(heap);
        });
    }

    // Notes that a stream is destroyed, and its last work. A new stream with the same handle is another stream. The
    // next streams that need memory adopt the heaps, once the last work is done and no block is live. So a program that
    // makes and destroys streams asks the driver for no memory.
    void end_stream(Stream stream, const std::shared_ptr<Work> &end);

    template <typename Visit> void each_segment(Visit visit) const {
        std::for_each(segments_.begin(), segments_.end(), visit);
        expandable_.each(visit);
    }

private:
    Heap &heap(Pool &pool, Stream stream, bool is_large);
    Heap *adopt(Pool &pool, StreamLife &life, bool is_large);
    void offer(Heap &heap);
    void join(Heap &heap, StreamLife &life);
    void leave(Heap &heap);
    Block *find(Heap &heap, std::size_t size);
    int grow_by_segment(Heap &heap, std::size_t size, const Room &room, StackId stack);
    int release_segment(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned, std::size_t *released);

    const int device_;
    Driver &driver_;
    const Settings &settings_;
    SizePolicy sizes_;
    StreamLives &lives_;
    BlockStore &store_;
    Statistics &statistics_;
    History &history_;
    UnmergedHeaps unmerged_;            // all heaps with a `recent` block, and some without
    MaybeUnneededHeaps maybe_unneeded_; // all empty heaps that may be unneeded, and some others
    BlockSplitter splitter_;
    ExpandableSegments expandable_;
    std::set<Segment *> segments_; // but for the expandable ones
    std::uint64_t frees_ = 0;
    std::uint64_t handed_out_ = 0;
};

} // namespace tcuda
