#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "driver/driver.hpp"
#include "memory/allocator/block_splitter.hpp"
#include "memory/allocator/block_store.hpp"
#include "memory/allocator/heap.hpp"
#include "memory/allocator/physical_memory.hpp"
#include "memory/allocator/pool.hpp"
#include "memory/allocator/room.hpp"
#include "memory/allocator/segment.hpp"
#include "memory/allocator/settings.hpp"
#include "memory/allocator/windows.hpp"
#include "memory/records/history.hpp"
#include "memory/records/statistics.hpp"

namespace tcuda {

// The expandable segments of a device. Each heap may have one: a range of more addresses than the device has memory, in
// which physical memory is mapped where the heap grows. The ranges without physical memory are the holes of the heap.
class ExpandableSegments {
public:
    ExpandableSegments(int device, Driver &driver, const Settings &settings, BlockStore &store, BlockSplitter &splitter,
                       MaybeUnneededHeaps &emptied, Statistics &statistics, History &history)
        : device_(device), driver_(driver), settings_(settings), store_(store), splitter_(splitter),
          statistics_(statistics), history_(history), memory_(device, driver, emptied, statistics),
          windows_(device, driver, store, splitter, statistics, history) {}
    ExpandableSegments(const ExpandableSegments &) = delete;
    ExpandableSegments &operator=(const ExpandableSegments &) = delete;

    // The hole by which the heap grows for a request of `size` bytes; null if the heap cannot grow by mapping. Reserves
    // addresses for a heap that has none.
    Block *find_hole(Heap &heap, std::size_t size);

    // Makes a free block for a request out of the free memory of the heap, by a window that is kept, or by a new one.
    // Opening a kept window calls no driver.
    bool open_kept_window(Heap &heap, std::size_t size) { return has_windows(heap) && windows_.open_kept(heap, size); }
    bool make_window(Heap &heap, std::size_t size) { return has_windows(heap) && windows_.make(heap, size); }

    // Closes the window of a free block that is the whole window.
    void close_window(Heap &heap, Block *block) { windows_.close(heap, block); }

    // Whether the heap could have more windows if unused windows were unmapped, and that.
    bool has_too_many_windows(const Heap &heap) const { return has_windows(heap) && Windows::are_full(heap); }
    void unmap_stale_windows(Heap &heap, std::uint64_t settled) { windows_.unmap_stale(heap, settled); }

    // Maps memory at the start of a hole, as much as the request needs beside the free memory of the heap, or more.
    // Returns a status.
    int grow(Heap &heap, Block *hole, std::size_t size, const Room &room, StackId stack);

    // Makes a window for a request out of all free memory of the heap, and of new memory for what is missing.
    int grow_window(Heap &heap, std::size_t size, const Room &room, StackId stack);

    // Whether the driver can take back any memory of a free block.
    static bool is_releasable(const Block *block);

    // Gives all memory of a free block back that lies in whole mappings. Adds its bytes to `released`. Returns a
    // status.
    int release(Heap &heap, Block *block, std::size_t *released);

    // Takes the addresses of a heap without mapped memory, for the next heap, or gives the addresses back to the
    // driver.
    void remove(Heap &heap);

    // Takes the memory of heaps away, and keeps their addresses and their blocks. Returns a status. After a failure,
    // the heaps have their memory with its contents, unless the driver fails again: then `*asleep` is true, and the
    // heaps have lost the memory that the driver has taken back.
    int sleep(const std::vector<Heap *> &heaps, bool *asleep);
    // Gives the heaps memory again, at the same addresses and with other contents. Returns a status. After a failure,
    // the heaps are asleep.
    int wake(const std::vector<Heap *> &heaps);

    // Offers the driver again the memory and the addresses that it failed to take back.
    void retry();

    // Gives back the memory and the addresses of all segments. Called when the ledger ends.
    void free_everything();

    // Visits the windows too, which are segments of their own.
    template <typename Visit> void each(Visit visit) const {
        for (const Segment *segment : segments_) {
            visit(segment);
            for (const auto &window : segment->heap->windows)
                visit(&window->segment);
        }
    }

private:
    struct Addresses {
        Address address;
        std::size_t size;
    };
    // The driver takes longer for a new range of addresses when there are more ranges. So the addresses of removed
    // heaps are kept for the next heaps. A pool that comes and goes, as in each capture, has two heaps.
    static constexpr std::size_t most_spare = 2;

    bool can_serve(const Pool &pool);
    bool has_windows(const Heap &heap) const;
    int reserve_addresses(Heap &heap);
    int take_addresses(Addresses *taken);
    static std::size_t needed_at(const Block *hole, std::size_t size);
    int grow_by(Heap &heap, Block *hole, std::size_t needed, const Room &room, StackId stack);
    int fill(Heap &heap, Block *hole, std::size_t size, const Room &room, StackId stack);
    int sleep_all(const std::vector<Heap *> &heaps);
    int unmap_closed_windows(Heap &heap);
    int map_all(const std::vector<Heap *> &heaps, int (PhysicalMemory::*map)(Address, Segment::Mapping &));
    void destroy_sleeping(const std::vector<Heap *> &heaps);
    void count_sleep(Heap &heap, Address address, std::size_t size, bool falls_asleep);
    int release_mapping(Heap &heap, Block **block, Address from, Address to);

    const int device_;
    Driver &driver_;
    const Settings &settings_;
    BlockStore &store_;
    BlockSplitter &splitter_;
    Statistics &statistics_;
    History &history_;
    PhysicalMemory memory_;
    Windows windows_;
    std::set<Segment *> segments_;
    std::set<Segment *> unreleased_; // the driver failed to take their addresses back
    std::array<Addresses, most_spare> spare_{}; // without memory, for the next heaps
    std::size_t spare_count_ = 0;
    std::size_t granularity_ = 0;
    bool addresses_are_spent_ = false; // no range was left when a heap last asked for addresses
    bool asked_granularity_ = false;
};

} // namespace tcuda
