#include "allocator/caching_allocator.hpp"

#include <algorithm>
#include <iterator>

namespace tcuda {
namespace {

constexpr std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

unsigned log2_floor(std::size_t size) { return 63u - static_cast<unsigned>(__builtin_clzll(size)); }

} // namespace

std::size_t CachingAllocator::rounded(std::size_t size) const {
    if (size <= unit)
        return unit;
    if (size > largest)
        return 0;
    constexpr unsigned mib = 20;
    const unsigned power = log2_floor(size);
    const std::size_t last = settings_.roundup_power2_divisions.size() - 1;
    const std::size_t divisions = settings_.roundup_power2_divisions[power < mib ? 0 : std::min<std::size_t>(power - mib, last)];
    if (divisions > 1 && size > unit * divisions)
        return round_up(round_up(size, std::max((std::size_t(1) << power) / divisions, std::size_t(1))), unit);
    return round_up(size, unit);
}

namespace {

// Never 0, which the map has for an empty place.
std::uintptr_t key_of_heap(Stream stream, bool is_large) { return (stream << 1 | (is_large ? 1 : 0)) + 1; }

} // namespace

Heap &CachingAllocator::heap(Pool &pool, Stream stream, bool is_large) {
    const std::uintptr_t key = key_of_heap(stream, is_large);
    if (Heap *known = pool.by_stream.find(key))
        return *known;
    auto made = std::make_unique<Heap>();
    made->pool = &pool;
    made->stream = stream;
    made->is_large = is_large;
    pool.by_stream.reserve_one();
    pool.heaps.push_back(std::move(made));
    pool.by_stream.insert(key, pool.heaps.back().get());
    return *pool.heaps.back();
}

void CachingAllocator::orphan(Heap &heap, std::shared_ptr<Work> end) {
    heap.pool->by_stream.erase(key_of_heap(heap.stream, heap.is_large));
    heap.end = std::move(end);
}

bool CachingAllocator::is_empty(const Heap &heap) {
    return heap.segments == 0 && (heap.expandable == nullptr || heap.expandable->mappings.empty());
}

void CachingAllocator::remove(Heap &heap) {
    if (Segment *segment = heap.expandable) {
        for (Block *block = segment->first; block != nullptr;) {
            Block *gone = block;
            block = block->after;
            delete_block(gone);
        }
        auto node = segments_.extract(segment);
        if (driver_.release(device_, segment->address, segment->size) == success)
            delete segment;
        else
            unreleased_.insert(std::move(node));
    }
    Pool &pool = *heap.pool;
    if (heap.end == nullptr)
        pool.by_stream.erase(key_of_heap(heap.stream, heap.is_large));
    const auto same = [&](const std::unique_ptr<Heap> &other) { return other.get() == &heap; };
    pool.heaps.erase(std::find_if(pool.heaps.begin(), pool.heaps.end(), same));
}

Block *CachingAllocator::new_block() {
    if (spare_blocks_ == nullptr) {
        block_store_.emplace_back();
        return &block_store_.back();
    }
    Block *block = spare_blocks_;
    spare_blocks_ = block->after;
    --spare_block_count_;
    block->before = block->after = nullptr;
    return block;
}

void CachingAllocator::delete_block(Block *block) {
    *block = Block{};
    block->after = spare_blocks_;
    spare_blocks_ = block;
    ++spare_block_count_;
}

// Whether the next `count` blocks can be made without memory of the host.
bool CachingAllocator::has_spare_blocks(std::size_t count) {
    try {
        while (spare_block_count_ < count) {
            block_store_.emplace_back();
            delete_block(&block_store_.back());
        }
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

// Blocks

void CachingAllocator::Splits::add(const Block *block) {
    const bool shares = (block->before != nullptr && block->before->is_mapped()) ||
                        (block->after != nullptr && block->after->is_mapped());
    if (block->is_free() && shares) {
        ++count;
        bytes += static_cast<std::int64_t>(block->size);
    }
}

void CachingAllocator::count(const Heap &heap, Splits before, Splits after) {
    if (before.count != after.count)
        statistics_.inactive_split.add(heap.is_large, after.count - before.count);
    if (before.bytes != after.bytes)
        statistics_.inactive_split_bytes.add(heap.is_large, after.bytes - before.bytes);
}

// Makes what is beyond `size` a block of its own, in the same state, in no list.
Block *CachingAllocator::cut(Block *block, std::size_t size) {
    Block *rest = new_block();
    rest->address = block->address + size;
    rest->size = block->size - size;
    rest->segment = block->segment;
    rest->state = block->state;
    rest->is_large = block->is_large;
    rest->freed_at = block->freed_at;
    rest->stream = block->stream;
    rest->pool = block->pool;
    rest->before = block;
    rest->after = block->after;
    if (rest->after != nullptr)
        rest->after->before = rest;
    block->after = rest;
    block->size = size;
    return rest;
}

void CachingAllocator::absorb_after(Block *block) {
    Block *gone = block->after;
    block->size += gone->size;
    block->freed_at = std::max(block->freed_at, gone->freed_at);
    block->after = gone->after;
    if (block->after != nullptr)
        block->after->before = block;
    delete_block(gone);
}

// Merges a block that has just become free with its neighbours, and lists it.
Block *CachingAllocator::merge(Heap &heap, Block *block) {
    if (block->after != nullptr && block->after->is_free()) {
        heap.free.erase(block->after);
        absorb_after(block);
    }
    if (block->before != nullptr && block->before->is_free()) {
        block = block->before;
        heap.free.erase(block);
        absorb_after(block);
    }
    heap.free.insert(block);
    return block;
}

Block *CachingAllocator::find(Heap &heap, std::size_t size) {
    Block *block = heap.free.best_fit(size);
    if (block == nullptr || suits(block, size))
        return block;
    if (heap.expandable == nullptr)
        return nullptr;
    // A block that must not be split is in front of those of the expandable segment, which all do.
    Block *best = nullptr;
    heap.free.each([&](Block *other) {
        if (other->segment->expandable && other->size >= size && (best == nullptr || BySize()(other, best)))
            best = other;
    });
    return best;
}

// Whether a free block that is large enough may be used. One that is no larger than what the driver would be asked for
// may be in any case: so what grow() has just taken is found.
bool CachingAllocator::suits(const Block *block, std::size_t size) const {
    if (block->size < settings_.max_split_size || block->segment->expandable || block->size <= segment_size(size))
        return true;
    return size >= settings_.max_split_size && block->size - size < settings_.max_non_split_rounding;
}

bool CachingAllocator::should_split(const Block *block, std::size_t size) const {
    const std::size_t rest = block->size - size;
    if (!block->pool->split)
        return false;
    if (block->segment->expandable || !block->is_large)
        return rest >= unit;
    return rest > small_limit && size < settings_.max_split_size;
}

Block *CachingAllocator::take(Pool &pool, Stream stream, std::size_t size) {
    Heap &heap = this->heap(pool, stream, is_large(size));
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
    Splits before, after;
    before.add(block);
    heap.free.erase(block);
    if (should_split(block, size)) {
        Block *rest;
        try {
            rest = cut(block, size);
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
    count(heap, before, after);
    handed_out_ += size;
    ++pool.live;
    return block;
}

void CachingAllocator::give(Block *block) {
    Heap &heap = *block->segment->heap;
    merge_recent(heap);
    block->state = Block::State::recent;
    block->freed_at = ++frees_;
    --block->pool->live;
    heap.recent = block;
    if (heap.is_large) // it may be long until it is taken, and large requests want what is merged
        merge_recent(heap);
}

void CachingAllocator::merge_recent(Heap &heap) {
    Block *block = heap.recent;
    if (block == nullptr)
        return;
    heap.recent = nullptr;
    Splits before, after;
    for (const Block *neighbour : {block->before, block->after})
        if (neighbour != nullptr)
            before.add(neighbour);
    block->state = Block::State::free;
    block->stack = 0;
    block->requested = 0;
    after.add(merge(heap, block));
    count(heap, before, after);
}

// Growing

std::size_t CachingAllocator::segment_size(std::size_t size) const {
    if (!is_large(size))
        return small_segment;
    return size < own_segment ? large_segment : round_up(size, small_segment);
}

bool CachingAllocator::expandable(const Pool &pool) {
    if (!settings_.expandable_segments || pool.library != nullptr || !pool.split)
        return false;
    if (!asked_granularity_) {
        if (driver_.granularity(device_, &granularity_) != success)
            return false;
        asked_granularity_ = true;
    }
    // Mappings have to fit into the sizes by which heaps grow.
    return granularity_ != 0 && small_segment % granularity_ == 0;
}

int CachingAllocator::grow(Pool &pool, Stream stream, std::size_t size, std::size_t limit, StackId stack) {
    Heap &heap = this->heap(pool, stream, is_large(size));
    if (expandable(pool) && (heap.expandable != nullptr || reserve_addresses(heap) == success)) {
        // The first hole that, with what is free beside it, is large enough; the last hole nearly always is. There is
        // none for more than a device can have, nor where what is live has cut the addresses into pieces.
        const auto free_size = [](const Block *block) { return block != nullptr && block->is_free() ? block->size : 0; };
        Block *const found = heap.holes.find([&](const Block *hole) {
            return free_size(hole->before) + hole->size + free_size(hole->after) >= size;
        });
        if (found != nullptr)
            return grow_by_mapping(heap, found, size, limit, stack);
    }
    return grow_by_segment(heap, size, limit, stack);
}

int CachingAllocator::grow_by_segment(Heap &heap, std::size_t size, std::size_t limit, StackId stack) {
    const std::size_t wanted = segment_size(size);
    if (wanted > limit || reserved() > limit - wanted)
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
    Block *block = new_block();
    Segment *segment = made.get();
    try {
        segments_.insert(segment);
    } catch (...) {
        delete_block(block);
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
    statistics_.reserved_bytes.add(is_large, static_cast<std::int64_t>(size));
    statistics_.segment.add(is_large, 1);
    segment->oversize = size >= settings_.max_split_size;
    if (segment->oversize)
        statistics_.oversize_segments.add(1);
    ++statistics_.num_device_alloc;
    ++heap.segments;
    history_.record(Action::segment_alloc, address, size, stream, stack);
}

bool CachingAllocator::overlaps(Address address, std::size_t size) const {
    return std::any_of(segments_.begin(), segments_.end(), [&](const Segment *segment) {
        return address < segment->address + segment->size && segment->address < address + size;
    });
}

// Reserves for a heap more addresses than the device has memory, so that its end is always free.
int CachingAllocator::reserve_addresses(Heap &heap) {
    std::size_t free, total;
    if (const int status = driver_.memory_info(device_, &free, &total))
        return status;
    const std::size_t size = round_up(total + total / 8, small_segment);
    auto made = std::make_unique<Segment>();
    Segment *segment = made.get();
    Block *block = new_block();
    int status = out_of_memory;
    try {
        segments_.insert(segment);
        status = driver_.reserve(device_, size, &segment->address);
    } catch (...) {
    }
    if (status != success) {
        segments_.erase(segment);
        delete_block(block);
        return status;
    }
    made.release();
    segment->heap = &heap;
    segment->size = block->size = size;
    segment->expandable = true;
    segment->first = block;
    block->address = segment->address;
    block->segment = segment;
    block->state = Block::State::unmapped;
    block->is_large = heap.is_large;
    block->stream = heap.stream;
    block->pool = heap.pool;
    heap.holes.insert(block);
    heap.expandable = segment;
    return success;
}

int CachingAllocator::grow_by_mapping(Heap &heap, Block *hole, std::size_t size, std::size_t limit, StackId stack) {
    const std::size_t beside = hole->before != nullptr && hole->before->is_free() ? hole->before->size : 0;
    const std::size_t needed = std::min(round_up(size - std::min(beside, size - 1), small_segment), hole->size);
    // Every mapping takes the driver as long as another of up to 128 MiB. So a heap that is full grows by more than is
    // needed; one that only has nothing of the right size does not.
    const std::size_t ahead = heap.is_large
                                  ? std::min(heap.mapped / 64, mapping_limit) / small_segment * small_segment
                                  : std::size_t(1) << log2_floor(std::min(heap.mapped / 16, small_growth_limit) | 1);
    std::size_t step = heap.is_large && size < own_segment ? large_segment : small_segment;
    if (heap.free.bytes() <= ahead)
        step = std::max(step, ahead);
    const std::size_t wanted = std::min(round_up(needed, step), hole->size);
    const auto fits = [&](std::size_t more) { return more <= limit && reserved() <= limit - more; };
    int status = fits(wanted) ? fill(heap, hole, wanted, stack) : out_of_memory;
    if (status == out_of_memory && needed < wanted && fits(needed))
        status = fill(heap, hole, needed, stack);
    return status;
}

// Maps memory at the beginning of a hole, which becomes free.
int CachingAllocator::fill(Heap &heap, Block *hole, std::size_t size, StackId stack) {
    Segment &segment = *heap.expandable;
    if (size < hole->size) // cut before mapping, as cutting may throw; a cut hole is as good as one
        heap.holes.insert(cut(hole, size));
    if (const int status = map(segment, hole->address, size)) {
        if (hole->after != nullptr && !hole->after->is_mapped()) {
            heap.holes.erase(hole->after);
            absorb_after(hole);
        }
        return status;
    }
    heap.holes.erase(hole);

    Splits before, after;
    std::int64_t ranges = 1; // contiguous mapped ranges, each of which counts as a segment
    for (const Block *neighbour : {hole->before, hole->after})
        if (neighbour != nullptr && neighbour->is_mapped()) {
            before.add(neighbour);
            --ranges;
        }
    hole->state = Block::State::free;
    history_.record(Action::segment_map, hole->address, size, heap.stream, stack);
    after.add(merge(heap, hole));
    count(heap, before, after);
    heap.mapped += size;
    statistics_.reserved_bytes.add(heap.is_large, static_cast<std::int64_t>(size));
    if (ranges != 0)
        statistics_.segment.add(heap.is_large, ranges);
    segment.stack = stack;
    return success;
}

int CachingAllocator::map(Segment &segment, Address address, std::size_t size) {
    const Address end = address + size;
    if (const int status = unmap(segment, address, end)) // what an earlier failure has left here
        return status;
    for (Address at = address; at < end;) {
        const std::size_t piece = std::min(mapping_limit, end - at);
        if (const int status = map_piece(segment, at, piece)) {
            unmap(segment, address, at);
            return status;
        }
        at += piece;
    }
    return success;
}

int CachingAllocator::map_piece(Segment &segment, Address address, std::size_t size) {
    Segment::Mappings::iterator mapping;
    try { // first, as it may throw
        mapping = segment.mappings.emplace(address, Segment::Mapping{size, 0}).first;
    } catch (const std::bad_alloc &) {
        return out_of_memory;
    }
    int status = driver_.create(device_, size, &mapping->second.physical);
    if (status != success) {
        segment.mappings.erase(mapping);
        return status;
    }
    status = driver_.map(device_, address, size, mapping->second.physical);
    if (status != success)
        destroy(segment.mappings.extract(mapping));
    else
        ++statistics_.num_device_alloc;
    return status;
}

// Unmaps all that is mapped from one address to another. What the driver fails to unmap stays known as mapped, also where
// there is a hole otherwise, until retry().
int CachingAllocator::unmap(Segment &segment, Address from, Address to) {
    int status = success;
    for (auto mapping = segment.mappings.lower_bound(from); mapping != segment.mappings.end() && mapping->first < to;) {
        const int failure = unmap(segment, mapping++);
        status = status == success ? failure : status;
    }
    return status;
}

int CachingAllocator::unmap(Segment &segment, Segment::Mappings::iterator mapping) {
    if (const int status = driver_.unmap(device_, mapping->first, mapping->second.size))
        return status;
    destroy(segment.mappings.extract(mapping));
    ++statistics_.num_device_free;
    return success;
}

void CachingAllocator::destroy(Segment::Mappings::node_type mapping) {
    if (driver_.destroy(device_, mapping.mapped().physical) != success)
        undestroyed_.insert(std::move(mapping));
}

// Releasing

bool CachingAllocator::releasable(const Block *block) const {
    if (!block->segment->expandable)
        return block->before == nullptr && block->after == nullptr;
    const auto &mappings = block->segment->mappings;
    const auto first = mappings.lower_bound(block->address);
    return first != mappings.end() && first->first + first->second.size <= block->address + block->size;
}

std::size_t CachingAllocator::release(const std::vector<Heap *> &heaps, std::uint64_t settled, std::size_t enough,
                                      std::vector<ReturnedSegment> &returned, int *status) {
    std::vector<std::pair<std::uint64_t, std::pair<Heap *, Block *>>> found;
    for (Heap *heap : heaps)
        heap->free.each([&](Block *block) {
            if (block->freed_at <= settled && releasable(block))
                found.push_back({block->freed_at, {heap, block}});
        });
    std::sort(found.begin(), found.end());
    returned.reserve(returned.size() + found.size()); // nothing below may throw with a segment in hand
    std::size_t released = 0;
    for (const auto &[age, where] : found) {
        if (released >= enough)
            break;
        *status = release_block(*where.first, where.second, returned, &released);
        if (*status != success)
            break;
    }
    return released;
}

int CachingAllocator::release_block(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned,
                                    std::size_t *released) {
    if (block->segment->expandable)
        return release_mappings(heap, block, released);
    const std::size_t size = block->size;
    const int status = release_segment(heap, block, returned);
    if (status == success)
        *released += size;
    return status;
}

int CachingAllocator::release_segment(Heap &heap, Block *block, std::vector<ReturnedSegment> &returned) {
    Segment *segment = block->segment;
    if (heap.pool->library != nullptr) {
        returned.push_back({heap.pool->library, segment->address, segment->size, heap.stream, segment->token});
    } else if (const int status = driver_.free(device_, segment->address)) {
        return status;
    }
    ++statistics_.num_device_free;
    --heap.segments;
    heap.free.erase(block);
    statistics_.reserved_bytes.add(heap.is_large, -static_cast<std::int64_t>(segment->size));
    statistics_.segment.add(heap.is_large, -1);
    if (segment->oversize)
        statistics_.oversize_segments.add(-1);
    history_.record(Action::segment_free, segment->address, segment->size, heap.stream, segment->stack);
    delete_block(block);
    segments_.erase(segment);
    delete segment;
    return success;
}

int CachingAllocator::release_mappings(Heap &heap, Block *block, std::size_t *released) {
    const auto &mappings = block->segment->mappings;
    const Address end = block->address + block->size;
    int status = success;
    for (auto mapping = mappings.lower_bound(block->address); block != nullptr && status == success;) {
        if (mapping == mappings.end() || mapping->first + mapping->second.size > end)
            break;
        const Address from = mapping->first, to = from + mapping->second.size;
        ++mapping; // the one before is about to go
        status = release_mapping(heap, &block, from, to);
        if (status == success)
            *released += to - from;
    }
    return status;
}

// Unmaps a mapping that lies within a free block; what is left of the block behind it takes the place of the block.
int CachingAllocator::release_mapping(Heap &heap, Block **block, Address from, Address to) {
    if (!has_spare_blocks(2)) // for what is left of the block on both sides
        return out_of_memory;
    Segment &segment = *heap.expandable;
    Block *head = *block;
    Splits before, after;
    before.add(head);
    heap.free.erase(head);
    Block *hole = from > head->address ? cut(head, from - head->address) : head;
    Block *tail = to < hole->address + hole->size ? cut(hole, to - from) : nullptr;
    if (const int status = unmap(segment, segment.mappings.find(from))) {
        if (tail != nullptr)
            absorb_after(hole);
        if (hole != head)
            absorb_after(head);
        heap.free.insert(head);
        return status;
    }
    hole->state = Block::State::unmapped;
    std::int64_t ranges = -1; // contiguous mapped ranges, each of which counts as a segment
    for (const Block *neighbour : {hole->before, hole->after})
        ranges += neighbour != nullptr && neighbour->is_mapped();
    for (Block *part : {hole == head ? nullptr : head, tail})
        if (part != nullptr) {
            heap.free.insert(part);
            after.add(part);
        }
    if (hole->after != nullptr && !hole->after->is_mapped()) {
        heap.holes.erase(hole->after);
        absorb_after(hole);
    }
    if (hole->before != nullptr && !hole->before->is_mapped())
        absorb_after(hole->before);
    else
        heap.holes.insert(hole);
    *block = tail;
    count(heap, before, after);
    heap.mapped -= to - from;
    statistics_.reserved_bytes.add(heap.is_large, -static_cast<std::int64_t>(to - from));
    if (ranges != 0)
        statistics_.segment.add(heap.is_large, ranges);
    history_.record(Action::segment_unmap, from, to - from, heap.stream, segment.stack);
    return success;
}

void CachingAllocator::retry() {
    for (Segment *segment : segments_)
        if (segment->expandable)
            segment->heap->holes.each([&](const Block *hole) { unmap(*segment, hole->address, hole->address + hole->size); });
    for (auto left = undestroyed_.begin(); left != undestroyed_.end();)
        left = driver_.destroy(device_, left->second.physical) == success ? undestroyed_.erase(left) : std::next(left);
    for (auto left = unreleased_.begin(); left != unreleased_.end();) {
        Segment *segment = *left;
        if (driver_.release(device_, segment->address, segment->size) != success) {
            ++left;
            continue;
        }
        delete segment;
        left = unreleased_.erase(left);
    }
}

void CachingAllocator::free_everything() {
    for (Segment *segment : segments_) {
        if (segment->expandable) {
            unmap(*segment, segment->address, segment->address + segment->size);
            driver_.release(device_, segment->address, segment->size);
        } else if (segment->heap->pool->library != nullptr) {
            segment->heap->pool->library->free(segment->address, segment->size, device_, segment->heap->stream,
                                               segment->token);
        } else {
            driver_.free(device_, segment->address);
        }
        delete segment;
    }
    segments_.clear();
    retry();
}

bool CachingAllocator::has_releasable(const Heap &heap) const {
    bool found = false;
    heap.free.each([&](const Block *block) { found = found || releasable(block); });
    return found;
}

} // namespace tcuda
