#include "memory/allocator/caching_allocator.hpp"

#include <algorithm>
#include <utility>

#include "memory/allocator/sizes.hpp"

namespace tcuda {
namespace {

// The most heaps of destroyed streams that are looked at for a stream that can adopt one. The oldest heaps come first,
// because their work is most likely done.
constexpr std::size_t most_looks = 8;

// The key of a heap in its pool. The key is never 0, because AddressMap uses 0 for an empty place.
std::uintptr_t key_of_heap(Stream stream, bool is_large) { return (stream << 1 | (is_large ? 1 : 0)) + 1; }

// Whether the driver can take back any memory of a free block.
bool is_releasable(const Block *block) {
    if (block->segment->expandable)
        return ExpandableSegments::is_releasable(block);
    return block->before == nullptr && block->after == nullptr;
}

} // namespace

// Allocating and freeing

Block *CachingAllocator::take(Pool &pool, Stream stream, std::size_t size) {
    Heap &heap = this->heap(pool, stream, is_large_request(size));
    Block *block = heap.recent;
    if (block != nullptr && block->size == size) {
        heap.recent = nullptr;
        block->state = Block::State::allocated;
        handed_out_ += size;
        ++pool.live;
        return block;
    }
    merge_recent(heap);
    block = find(heap, size);
    if (block == nullptr)
        return nullptr;
    BlockSplitter::Splits before, after;
    before.add(block);
    heap.free.erase(block);
    if (sizes_.should_split(block, size)) {
        Block *rest;
        try {
            rest = splitter_.cut(block, size);
        } catch (...) {
            heap.free.insert(block);
            throw;
        }
        heap.free.insert(rest);
        block->state = Block::State::allocated;
        after.add(rest);
    } else {
        block->state = Block::State::allocated;
    }
    splitter_.count(heap, before, after);
    handed_out_ += size;
    ++pool.live;
    return block;
}

Block *CachingAllocator::find(Heap &heap, std::size_t size) {
    Block *block = heap.free.best_fit(size);
    // A free block before a hole can become as large as any request, so the block serves only what no other block can,
    // as in torch.
    const auto can_grow = [](const Block *block) { return block->after != nullptr && block->after->is_hole(); };
    Block *other = block;
    while (other != nullptr && can_grow(other))
        other = heap.free.next_fit(other);
    if (other != nullptr)
        block = other;
    if (block == nullptr || sizes_.suits(block, size))
        return block;
    if (heap.expandable == nullptr)
        return nullptr;
    // The best fit must not be split. Blocks of the expandable segment may be split, so the best of those is taken.
    Block *best = nullptr;
    heap.free.each([&](Block *other) {
        if (other->segment->expandable && other->size >= size && (best == nullptr || BySize()(other, best)))
            best = other;
    });
    return best;
}

void CachingAllocator::give(Block *block) {
    Heap &heap = *block->segment->heap;
    merge_recent(heap);
    block->state = Block::State::recent;
    block->freed_at = ++frees_;
    heap.only_grows = heap.still_grows = false;
    --block->pool->live;
    heap.recent = block;
    // A large block may stay free for long, and large requests need merged memory.
    if (heap.is_large || heap.end != nullptr)
        merge_recent(heap);
    else
        unmerged_.add(heap);
    if (heap.end != nullptr)
        offer(heap);
}

void CachingAllocator::merge_recent(Heap &heap) {
    Block *block = heap.recent;
    if (block == nullptr)
        return;
    heap.recent = nullptr;
    BlockSplitter::Splits before, after;
    for (const Block *neighbour : {block->before, block->after})
        if (neighbour != nullptr)
            before.add(neighbour);
    block->state = Block::State::free;
    block->stack = 0;
    block->requested = 0;
    block = splitter_.merge(heap, block);
    after.add(block);
    splitter_.count(heap, before, after);
    if (block->segment->window != nullptr && block->size == block->segment->size)
        expandable_.close_window(heap, block);
}

// Growing

bool CachingAllocator::open_kept_window(Pool &pool, Stream stream, std::size_t size) {
    return is_large_request(size) && expandable_.open_kept_window(heap(pool, stream, true), size);
}

bool CachingAllocator::make_window(Pool &pool, Stream stream, std::size_t size) {
    return is_large_request(size) && expandable_.make_window(heap(pool, stream, true), size);
}

Heap *CachingAllocator::heap_with_too_many_windows(Pool &pool, Stream stream, std::size_t size) {
    if (!is_large_request(size))
        return nullptr;
    Heap &heap = this->heap(pool, stream, true);
    return expandable_.has_too_many_windows(heap) ? &heap : nullptr;
}

int CachingAllocator::grow(Pool &pool, Stream stream, std::size_t size, const Room &room, StackId stack) {
    Heap &heap = this->heap(pool, stream, is_large_request(size));
    if (Block *hole = expandable_.find_hole(heap, size)) {
        const int status = expandable_.grow(heap, hole, size, room, stack);
        return status == out_of_memory ? expandable_.grow_window(heap, size, room, stack) : status;
    }
    return grow_by_segment(heap, size, room, stack);
}

int CachingAllocator::grow_by_segment(Heap &heap, std::size_t size, const Room &room, StackId stack) {
    const std::size_t wanted = segment_size(size);
    if (wanted > room.allowed)
        return out_of_memory;
    Address address = 0;
    const int status = driver_.allocate(device_, wanted, &address);
    if (status != success)
        return status;
    try {
        add_segment(*heap.pool, heap.stream, heap.is_large, address, wanted, nullptr, stack);
    } catch (...) {
        driver_.free(device_, address);
        throw;
    }
    return success;
}

void CachingAllocator::add_segment(Pool &pool, Stream stream, bool is_large, Address address, std::size_t size,
                                   void *token, StackId stack) {
    Heap &heap = this->heap(pool, stream, is_large);
    auto made = std::make_unique<Segment>();
    Block *block = store_.make();
    Segment *segment = made.get();
    try {
        segments_.insert(segment);
    } catch (...) {
        store_.remove(block);
        throw;
    }
    made.release();
    segment->heap = &heap;
    segment->address = block->address = address;
    segment->size = block->size = size;
    segment->stack = stack;
    segment->token = token;
    segment->first = block;
    block->segment = segment;
    block->is_large = is_large;
    block->stream = stream;
    block->pool = &pool;
    heap.free.insert(block);
    count_reserved(statistics_, pool, is_large, static_cast<std::int64_t>(size));
    statistics_.segment.add(is_large, 1);
    segment->oversize = size >= settings_.max_split_size;
    if (segment->oversize)
        statistics_.oversize_segments.add(1);
    ++statistics_.num_device_alloc;
    ++heap.segments;
    heap.in_segments += size;
    history_.record_segment(Action::segment_alloc, address, size, stream, stack);
    if (!pool.captured)
        history_.tell_mapped(address, size);
}

bool CachingAllocator::overlaps(Address address, std::size_t size) const {
    bool found = false;
    each_segment([&](const Segment *segment) {
        found = found || (address < segment->address + segment->size && segment->address < address + size);
    });
    return found;
}

// Giving memory back

bool CachingAllocator::has_releasable(const Heap &heap, std::uint64_t settled) const {
    const auto wanted = [&](const Block *block) { return block->freed_at <= settled && is_releasable(block); };
    return heap.free.find_large(wanted) != nullptr;
}

std::size_t CachingAllocator::release(const std::vector<Settled> &heaps, std::size_t enough,
                                      std::vector<ReturnedSegment> &returned, int *status) {
    std::vector<std::pair<std::uint64_t, std::pair<Heap *, Block *>>> found;
    for (const auto &[heap, settled] : heaps)
        heap->free.each_large([&, heap = heap, settled = settled](Block *block) {
            if (block->freed_at <= settled && is_releasable(block))
                found.push_back({block->freed_at, {heap, block}});
        });
    std::sort(found.begin(), found.end());
    returned.reserve(returned.size() + found.size()); // release_segment() must not throw
    std::size_t released = 0;
    for (const auto &[age, where] : found) {
        if (released >= enough)
            break;
        const auto [heap, block] = where;
        *status = block->segment->expandable ? expandable_.release(*heap, block, &released)
                                             : release_segment(*heap, block, returned, &released);
        if (is_empty(*heap)) {
            heap->only_grows = heap->still_grows = true;
            maybe_unneeded_.add(*heap);
        }
        if (*status != success)
            break;
    }
    return released;
}

int CachingAllocator::release_segment(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned,
                                      std::size_t *released) {
    Segment *segment = block->segment;
    if (heap.pool->library != nullptr) {
        returned.push_back({heap.pool->library, segment->address, segment->size, heap.stream, segment->token});
    } else if (const int status = driver_.free(device_, segment->address)) {
        return status;
    }
    ++statistics_.num_device_free;
    --heap.segments;
    heap.in_segments -= segment->size;
    heap.free.erase(block);
    count_reserved(statistics_, *heap.pool, heap.is_large, -static_cast<std::int64_t>(segment->size));
    statistics_.segment.add(heap.is_large, -1);
    if (segment->oversize)
        statistics_.oversize_segments.add(-1);
    history_.record_segment(Action::segment_free, segment->address, segment->size, heap.stream, segment->stack);
    store_.remove(block);
    *released += segment->size;
    segments_.erase(segment);
    delete segment;
    return success;
}

void CachingAllocator::forget_uses(const Pool &pool) noexcept {
    if (!history_.is_observed())
        return;
    each_segment([&](const Segment *segment) {
        if (segment->heap->pool == &pool)
            history_.forget(segment->address, segment->size);
    });
}

void CachingAllocator::free_everything() {
    for (Segment *segment : segments_) {
        if (segment->heap->pool->library != nullptr) {
            segment->heap->pool->library->free(segment->address, segment->size, device_, segment->heap->stream,
                                               segment->token);
        } else {
            driver_.free(device_, segment->address);
        }
        delete segment;
    }
    segments_.clear();
    expandable_.free_everything();
}

// Heaps

Heap &CachingAllocator::heap(Pool &pool, Stream stream, bool is_large) {
    const std::uintptr_t key = key_of_heap(stream, is_large);
    if (Heap *known = pool.by_stream.find(key))
        return *known;
    pool.by_stream.reserve_one();
    StreamLife &life = lives_.of(stream);
    Heap *heap = adopt(pool, life, is_large);
    if (heap == nullptr) {
        auto made = std::make_unique<Heap>();
        heap = made.get();
        heap->pool = &pool;
        heap->stream = stream;
        heap->is_large = is_large;
        heap->place = pool.heaps.size();
        pool.heaps.push_back(std::move(made));
        join(*heap, life);
    }
    pool.by_stream.insert(key, heap);
    maybe_unneeded_.add(*heap); // the heap stays empty if there is no memory
    return *heap;
}

// Gives a stream the heap of a destroyed stream, with the addresses and the memory. Returns null if no heap is found.
// Graphs use the memory of their pool on streams that are not known, and a library may keep memory by stream. So the
// heaps of such pools are never adopted.
Heap *CachingAllocator::adopt(Pool &pool, StreamLife &life, bool is_large) {
    if (pool.captured || pool.library != nullptr)
        return nullptr;
    AdoptableHeaps &adoptable = pool.adoptable[is_large];
    Heap *heap = adoptable.find(most_looks, [](const Heap &heap) { return heap.end->done && heap.pins == 0; });
    if (heap == nullptr)
        return nullptr;
    adoptable.remove(*heap);
    pool.ownerless.remove(*heap);
    const auto change_owner = [&](Block *block) {
        // The history and a race detector see that the driver takes the memory back and gives it to the new owner.
        const bool expandable = block->segment->expandable;
        const StackId stack = block->segment->stack;
        history_.forget(block->address, block->size);
        history_.note_move(expandable ? Action::segment_unmap : Action::segment_free, block->address, block->size,
                           heap->stream, stack);
        history_.note_move(expandable ? Action::segment_map : Action::segment_alloc, block->address, block->size,
                           life.stream, stack);
        block->stream = life.stream;
    };
    heap->free.each(change_owner);
    heap->holes.each([&](Block *hole) { hole->stream = life.stream; });
    leave(*heap);
    heap->end = nullptr;
    heap->adopted_at = frees_;
    pool.inherited.add(*heap);
    heap->stream = life.stream;
    join(*heap, life);
    return heap;
}

// Lets other streams adopt the heap of a destroyed stream, unless a block is live.
void CachingAllocator::offer(Heap &heap) {
    if (heap.is_unused())
        heap.pool->adoptable[heap.is_large].add_last(heap);
}

void CachingAllocator::join(Heap &heap, StreamLife &life) {
    heap.life = &life;
    heap.before = nullptr;
    heap.after = std::exchange(life.heaps, &heap);
    if (heap.after != nullptr)
        heap.after->before = &heap;
}

void CachingAllocator::leave(Heap &heap) {
    (heap.before != nullptr ? heap.before->after : heap.life->heaps) = heap.after;
    if (heap.after != nullptr)
        heap.after->before = heap.before;
    lives_.forget_unused(*heap.life);
}

bool CachingAllocator::is_empty(const Heap &heap) {
    return heap.segments == 0 && (heap.expandable == nullptr || heap.expandable->mappings.empty());
}

void CachingAllocator::remove(Heap &heap) {
    if (heap.expandable != nullptr)
        expandable_.remove(heap);
    unmerged_.remove(heap);
    maybe_unneeded_.remove(heap);
    Pool &pool = *heap.pool;
    pool.ownerless.remove(heap);
    pool.inherited.remove(heap);
    pool.adoptable[heap.is_large].remove(heap);
    if (heap.end == nullptr)
        pool.by_stream.erase(key_of_heap(heap.stream, heap.is_large));
    leave(heap);
    const std::size_t place = heap.place;
    pool.heaps.back()->place = place;
    std::swap(pool.heaps[place], pool.heaps.back());
    pool.heaps.pop_back();
}

void CachingAllocator::end_stream(Stream stream, const std::shared_ptr<Work> &end) {
    StreamLife *life = lives_.find(stream);
    if (life == nullptr)
        return;
    for (Heap *heap = life->heaps; heap != nullptr; heap = heap->after) {
        heap->pool->by_stream.erase(key_of_heap(stream, heap->is_large));
        heap->end = end;
        maybe_unneeded_.add(*heap);
        heap->pool->inherited.remove(*heap);
        heap->pool->ownerless.add(*heap);
        merge_recent(*heap);
        offer(*heap);
    }
    lives_.end(*life, end);
}

} // namespace tcuda
