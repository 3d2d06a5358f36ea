// The native source: a caching allocator that hands a stream's freed memory out again on that stream.
//
// The policy is torch's: sizes in units of 512 bytes, small requests (up to 1 MiB) apart from large ones, the best fit
// of what is free on the stream, split and merged again. What is new memory is either a segment of its own, of 2 MiB, of
// 20 MiB or of the size of a larger request; or, with expandable segments, physical memory mapped at the end of what the
// stream has, in one piece as long as the request wants it.
//
// Lock rule: every function is called under the lock of the device's ledger, and none calls Python.
// Lifetime rule: blocks belong to their segment, segments to the allocator, which lives as long as the process.
// Failures: what the driver fails to take back is kept and offered again later; nothing of it is handed out meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "allocator/block.hpp"
#include "allocator/external_source.hpp"
#include "allocator/heap.hpp"
#include "allocator/pool.hpp"
#include "allocator/segment.hpp"
#include "allocator/settings.hpp"
#include "driver/driver.hpp"
#include "records/history.hpp"
#include "records/statistics.hpp"

namespace tcuda {

// A segment that its library has to free, once the lock is given back.
struct ReturnedSegment {
    std::shared_ptr<ExternalSource> library;
    Address address;
    std::size_t size;
    Stream stream;
    void *token;
};

class CachingAllocator {
public:
    CachingAllocator(int device, Driver &driver, const Settings &settings, Statistics &statistics, History &history)
        : device_(device), driver_(driver), settings_(settings), statistics_(statistics), history_(history) {}
    CachingAllocator(const CachingAllocator &) = delete;
    CachingAllocator &operator=(const CachingAllocator &) = delete;

    // What `size` bytes take up: a multiple of the unit; 0 if no such number fits.
    std::size_t rounded(std::size_t size) const;
    static constexpr std::size_t largest = std::size_t(1) << 62; // beyond it sums could overflow, and no memory is as large

    // A block of a rounded size from what is free on the stream, or null. May throw std::bad_alloc.
    Block *take(Pool &pool, Stream stream, std::size_t size);

    // Takes memory for a request of `size` bytes from the driver, unless that would make the device's reserved memory
    // more than `limit`. Returns a status; after success take() finds a block.
    int grow(Pool &pool, Stream stream, std::size_t size, std::size_t limit, StackId stack);

    // What grow() would ask the driver for.
    std::size_t segment_size(std::size_t size) const;

    // Takes over a segment from the library of the pool. May throw std::bad_alloc, and then has not.
    void add_segment(Pool &pool, Stream stream, bool is_large, Address address, std::size_t size, void *token,
                     StackId stack);

    // Whether a segment has any of these addresses.
    bool overlaps(Address address, std::size_t size) const;

    // Makes a block free again, and merges it with its neighbours. A small one is merged when the next one is given on
    // the heap, or one of another size is taken: a program that makes and drops arrays of one size does no work for it.
    void give(Block *block);

    // Merges what was given last, before anybody looks at free blocks or at the statistics of the source.
    void merge_recent(Heap &heap);

    // How often give() was called: memory freed later is not `settled` below.
    std::uint64_t frees() const { return frees_; }

    // Whether a heap has anything that release() could give back.
    bool has_releasable(const Heap &heap) const;

    // The bytes that take() has handed out so far.
    std::uint64_t handed_out() const { return handed_out_; }

    // Gives free memory of `heaps` back to the driver, oldest first, if it was freed before `settled`, until `enough`
    // bytes have been given back. Returns how many; what a library has to free is added to `returned`. The first
    // failure of the driver ends it, and is left in `status`.
    std::size_t release(const std::vector<Heap *> &heaps, std::uint64_t settled, std::size_t enough,
                        std::vector<ReturnedSegment> &returned, int *status);

    // Offers the driver again what it failed to take back.
    void retry();

    // Whether nothing is left of a heap but addresses; and how such a heap leaves its pool.
    static bool is_empty(const Heap &heap);
    void remove(Heap &heap);

    // Frees all segments, whether blocks of them are live or not.
    void free_everything();

    bool is_large(std::size_t size) const { return size > small_limit; }
    bool expandable(const Pool &pool);
    Heap &heap(Pool &pool, Stream stream, bool is_large);

    // The stream of the heap is no more: another of the same handle gets another heap.
    void orphan(Heap &heap, std::shared_ptr<Work> end);
    const std::set<Segment *> &segments() const { return segments_; }
    std::size_t reserved() const { return static_cast<std::size_t>(statistics_.reserved_bytes.all.current); }

    // Blocks outside of segments, for sources that keep none.
    Block *new_block();
    void delete_block(Block *block);

    static constexpr std::size_t small_limit = std::size_t(1) << 20;
    static constexpr std::size_t small_segment = std::size_t(2) << 20;
    static constexpr std::size_t large_segment = std::size_t(20) << 20;
    static constexpr std::size_t own_segment = std::size_t(10) << 20; // from here on a request has one for itself
    static constexpr std::size_t mapping_limit = std::size_t(128) << 20;
    static constexpr std::size_t small_growth_limit = std::size_t(8) << 20;

private:
    struct Splits {
        std::int64_t count = 0, bytes = 0;
        void add(const Block *block);
    };

    Block *find(Heap &heap, std::size_t size);
    bool suits(const Block *block, std::size_t size) const;
    bool should_split(const Block *block, std::size_t size) const;
    Block *cut(Block *block, std::size_t size);
    void absorb_after(Block *block);
    Block *merge(Heap &heap, Block *block);
    void count(const Heap &heap, Splits before, Splits after);

    int grow_by_segment(Heap &heap, std::size_t size, std::size_t limit, StackId stack);
    int grow_by_mapping(Heap &heap, Block *hole, std::size_t size, std::size_t limit, StackId stack);
    int reserve_addresses(Heap &heap);
    int fill(Heap &heap, Block *hole, std::size_t size, StackId stack);
    int map(Segment &segment, Address address, std::size_t size);
    int map_piece(Segment &segment, Address address, std::size_t size);
    int unmap(Segment &segment, Address from, Address to);
    int unmap(Segment &segment, Segment::Mappings::iterator mapping);
    void destroy(Segment::Mappings::node_type mapping);
    bool has_spare_blocks(std::size_t count);
    bool releasable(const Block *block) const;
    int release_block(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned, std::size_t *released);
    int release_segment(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned);
    int release_mappings(Heap &heap, Block *block, std::size_t *released);
    int release_mapping(Heap &heap, Block **block, Address from, Address to);

    const int device_;
    Driver &driver_;
    const Settings &settings_;
    Statistics &statistics_;
    History &history_;
    std::set<Segment *> segments_;
    std::deque<Block> block_store_;
    Block *spare_blocks_ = nullptr;
    std::size_t spare_block_count_ = 0;
    std::uint64_t frees_ = 0;
    std::uint64_t handed_out_ = 0;
    std::size_t granularity_ = 0;
    bool asked_granularity_ = false;
    // What the driver failed to take back: memory that is not mapped any more, and addresses that nothing is mapped at.
    // They come in the nodes in which they were known, for which no memory is needed.
    std::multimap<Address, Segment::Mapping> undestroyed_;
    std::set<Segment *> unreleased_;
};

} // namespace tcuda
