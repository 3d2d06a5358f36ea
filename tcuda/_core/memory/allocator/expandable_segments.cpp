#include "memory/allocator/expandable_segments.hpp"

#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "memory/allocator/sizes.hpp"

namespace tcuda {
namespace {

// As long as no block was freed, a heap grows ahead of its needs by a quarter of what the heap has, and at most by four
// of the steps of torch. A program that only allocates, such as one that loads weights, uses that memory next, and
// wastes at most the last step. In a program that also frees, blocks fit into freed memory. If no block was freed since
// the heap grew last, the heap may grow ahead by a share that hardly counts beside the rest.
constexpr std::size_t shares_at_first = 4, shares_later = 64, most_steps_ahead = 4;

// A heap grows ahead at most by this share of the memory that it could still get.
constexpr std::size_t shares_of_rest = 4;

// Memory goes back to the driver in whole pieces, and a window shows whole pieces but for its two ends. So pieces are
// small where memory is short. Each piece costs calls of the driver, so pieces are large where memory is plentiful. A
// piece is at most this share of the memory that the heap could still get.
constexpr std::size_t pieces_of_rest = 512;

} // namespace

bool ExpandableSegments::can_serve(const Pool &pool) {
    if (!settings_.expandable_segments || pool.library != nullptr || !pool.split)
        return false;
    if (!asked_granularity_) {
        if (driver_.granularity(device_, &granularity_) != success)
            return false;
        asked_granularity_ = true;
    }
    // The sizes by which heaps grow must be multiples of the granularity.
    return granularity_ != 0 && small_segment % granularity_ == 0;
}

// Small requests need no windows: the free memory between small blocks is rarely a whole piece. A graph runs its
// kernels again at the addresses of the capture, so a pool of graphs has no windows. A race detector compares
// addresses, and would miss a race between uses of the same memory by two addresses.
bool ExpandableSegments::has_windows(const Heap &heap) const {
    return heap.is_large && heap.expandable != nullptr && !settings_.trim_always && !heap.pool->captured &&
           !history_.is_observed();
}

Block *ExpandableSegments::find_hole(Heap &heap, std::size_t size) {
    if (!can_serve(*heap.pool) || (heap.expandable == nullptr && reserve_addresses(heap) != success))
        return nullptr;
    // The first hole that is large enough together with the free blocks beside it, nearly always the last hole.
    // No hole is large enough if no device can serve the request, or if live blocks have cut the addresses into pieces.
    const auto free_size = [](const Block *block) { return block != nullptr && block->is_free() ? block->size : 0; };
    return heap.holes.find(
        [&](const Block *hole) { return free_size(hole->before) + hole->size + free_size(hole->after) >= size; });
}

// Takes more addresses than the device has memory, so that the end of the range is always a hole.
int ExpandableSegments::take_addresses(Addresses *taken) {
    if (spare_count_ > 0) {
        *taken = spare_[--spare_count_];
        return success;
    }
    // A process has addresses for some hundreds of ranges, and the driver searches long before a request fails (26 ms
    // on an H200). The next request may succeed only when a range has been given back.
    if (addresses_are_spent_ && segments_.size() > 1) // one is the segment that needs the addresses
        return out_of_memory;
    std::size_t free, total;
    if (const int status = driver_.memory_info(device_, &free, &total))
        return status;
    taken->size = round_up(total + total / 8, small_segment);
    const int status = driver_.reserve(device_, taken->size, &taken->address);
    addresses_are_spent_ = status != success;
    return status;
}

int ExpandableSegments::reserve_addresses(Heap &heap) {
    auto made = std::make_unique<Segment>();
    Segment *segment = made.get();
    Block *block = store_.make();
    Addresses taken{};
    int status = out_of_memory;
    try {
        segments_.insert(segment);
        status = take_addresses(&taken);
    } catch (...) {
    }
    if (status != success) {
        segments_.erase(segment);
        store_.remove(block);
        return status;
    }
    made.release();
    segment->heap = &heap;
    segment->address = block->address = taken.address;
    segment->size = block->size = taken.size;
    segment->expandable = true;
    segment->first = block;
    block->segment = segment;
    block->state = Block::State::unmapped;
    block->is_large = heap.is_large;
    block->stream = heap.stream;
    block->pool = heap.pool;
    heap.holes.insert(block);
    heap.expandable = segment;
    return success;
}

int ExpandableSegments::grow(Heap &heap, Block *hole, std::size_t size, const Room &room, StackId stack) {
    return grow_by(heap, hole, needed_at(hole, size), room, stack);
}

int ExpandableSegments::grow_window(Heap &heap, std::size_t size, const Room &room, StackId stack) {
    if (!has_windows(heap) || Windows::are_full(heap))
        return out_of_memory;
    const std::size_t largest = windows_.largest(heap);
    if (largest < size) {
        const std::size_t missing = round_up(size - largest, small_segment);
        // The free blocks beside a hole are a part of `largest` already, so the hole itself must have the room.
        Block *hole = heap.holes.find([&](const Block *each) { return each->size >= missing; });
        const int status = hole == nullptr || missing >= size ? out_of_memory : fill(heap, hole, missing, room, stack);
        if (status != success)
            return status;
    }
    return heap.free.best_fit(size) != nullptr || windows_.make(heap, size) ? success : out_of_memory;
}

// The memory that a request needs at the start of a hole.
std::size_t ExpandableSegments::needed_at(const Block *hole, std::size_t size) {
    const std::size_t beside = hole->before != nullptr && hole->before->is_free() ? hole->before->size : 0;
    return std::min(round_up(size - std::min(beside, size - 1), small_segment), hole->size);
}

int ExpandableSegments::grow_by(Heap &heap, Block *hole, std::size_t needed, const Room &room, StackId stack) {
    // A small mapping takes the driver as long as a large one. So a heap grows by at least the step of torch.
    const std::size_t least = heap.is_large ? large_segment : small_segment;
    const std::size_t steps = heap.mapped / least / (heap.only_grows ? shares_at_first : shares_later);
    const std::size_t ahead = least << std::min(log2_floor(steps | 1), log2_floor(most_steps_ahead));
    const bool grows_ahead = heap.still_grows && heap.free.bytes() <= ahead && ahead <= room.expected / shares_of_rest;
    const std::size_t step = grows_ahead ? ahead : least;
    // Large memory ends at a multiple of the step, as in torch.
    const std::size_t before = heap.is_large ? hole->address - heap.expandable->address : 0;
    const std::size_t wanted = std::min(round_up(before + needed, step) - before, hole->size);
    const int status = fill(heap, hole, wanted, room, stack);
    return status == out_of_memory && needed < wanted ? fill(heap, hole, needed, room, stack) : status;
}

// Maps memory at the start of a hole of at least this size, if the limit leaves room for all of it, and makes that part
// a free block.
int ExpandableSegments::fill(Heap &heap, Block *hole, std::size_t size, const Room &room, StackId stack) {
    if (size > room.allowed)
        return out_of_memory;
    const std::size_t piece = std::max(room.expected / pieces_of_rest / small_segment * small_segment, small_segment);
    Segment &segment = *heap.expandable;
    if (size < hole->size) // before mapping, because cut() may throw; two holes do no harm
        heap.holes.insert(splitter_.cut(hole, size));
    if (const int status = memory_.map(segment, hole->address, size, piece)) {
        if (hole->after != nullptr && hole->after->is_hole()) {
            heap.holes.erase(hole->after);
            splitter_.absorb_after(hole);
        }
        return status;
    }
    heap.holes.erase(hole);

    history_.record_segment(Action::segment_map, hole->address, size, heap.stream, stack);
    splitter_.put_back(heap, hole);
    heap.mapped += size;
    heap.still_grows = true;
    count_reserved(statistics_, *heap.pool, heap.is_large, static_cast<std::int64_t>(size));
    segment.stack = stack;
    return success;
}

// Releasing

bool ExpandableSegments::is_releasable(const Block *block) {
    const auto &mappings = block->segment->mappings;
    const auto first = mappings.lower_bound(block->address);
    return block->segment->window == nullptr && first != mappings.end() &&
           first->first + first->second.size <= block->address + block->size;
}

int ExpandableSegments::release(Heap &heap, Block *block, std::size_t *released) {
    const auto &mappings = block->segment->mappings;
    const auto end_of = [](const auto &mapping) { return mapping.first + mapping.second.size; };
    auto mapping = mappings.lower_bound(block->address), behind = mappings.lower_bound(block->address + block->size);
    if (mapping != behind && end_of(*std::prev(behind)) > block->address + block->size)
        --behind; // another block has a part of this mapping
    if (mapping == behind)
        return success;
    // A window that shows only other parts of the block may be in use until now.
    int status = windows_.unmap(heap, mapping->first, end_of(*std::prev(behind)));
    while (mapping != behind && status == success) {
        const Address from = mapping->first, to = end_of(*mapping);
        ++mapping; // release_mapping() erases the mapping
        status = release_mapping(heap, &block, from, to);
        if (status == success)
            *released += to - from;
    }
    return status;
}

// Unmaps a mapping that lies within a free block. `block` becomes the rest of the block behind the mapping, or null.
int ExpandableSegments::release_mapping(Heap &heap, Block **block, Address from, Address to) {
    if (!store_.has_spare(2)) // for the rests of the block on both sides
        return out_of_memory;
    Segment &segment = *heap.expandable;
    Block *head = *block;
    BlockSplitter::Splits before, after;
    before.add(head);
    heap.free.erase(head);
    Block *hole = from > head->address ? splitter_.cut(head, from - head->address) : head;
    Block *tail = to < hole->address + hole->size ? splitter_.cut(hole, to - from) : nullptr;
    const auto mapping = segment.mappings.find(from);
    const bool asleep = mapping->second.asleep;
    if (const int status = memory_.unmap(segment, mapping)) {
        if (tail != nullptr)
            splitter_.absorb_after(hole);
        if (hole != head)
            splitter_.absorb_after(head);
        heap.free.insert(head);
        return status;
    }
    hole->state = Block::State::unmapped;
    std::int64_t ranges = -1; // contiguous mapped ranges, each of which counts as a segment
    for (const Block *neighbour : {hole->before, hole->after})
        ranges += neighbour != nullptr && neighbour->is_here();
    for (Block *part : {hole == head ? nullptr : head, tail})
        if (part != nullptr) {
            heap.free.insert(part);
            after.add(part);
        }
    if (hole->after != nullptr && hole->after->is_hole()) {
        heap.holes.erase(hole->after);
        splitter_.absorb_after(hole);
    }
    if (hole->before != nullptr && hole->before->is_hole())
        splitter_.absorb_after(hole->before);
    else
        heap.holes.insert(hole);
    *block = tail;
    splitter_.count(heap, before, after);
    heap.mapped -= to - from;
    const auto bytes = -static_cast<std::int64_t>(to - from);
    if (asleep)
        statistics_.sleeping_bytes.add(heap.is_large, bytes);
    else
        count_reserved(statistics_, *heap.pool, heap.is_large, bytes);
    if (ranges != 0)
        statistics_.segment.add(heap.is_large, ranges);
    if (asleep)
        history_.forget(from, to - from);
    else
        history_.record_segment(Action::segment_unmap, from, to - from, heap.stream, segment.stack);
    return success;
}

// Sleeping

int ExpandableSegments::sleep(const std::vector<Heap *> &heaps, bool *asleep) {
    *asleep = false;
    const int status = sleep_all(heaps);
    if (status != success && map_all(heaps, &PhysicalMemory::map_again) == success) // the same memory
        return status;
    *asleep = true;
    destroy_sleeping(heaps);
    return status;
}

// Goes on after a failure, and returns the first one.
int ExpandableSegments::sleep_all(const std::vector<Heap *> &heaps) {
    int first = success;
    const auto note = [&](int status) { first = first == success ? status : first; };
    for (Heap *heap : heaps) {
        if (heap->expandable == nullptr)
            continue;
        note(unmap_closed_windows(*heap));
        note(windows_.sleep(*heap));
        for (auto &[address, mapping] : heap->expandable->mappings) {
            const bool slept = mapping.asleep;
            note(memory_.unmap_for_sleep(address, mapping));
            if (mapping.asleep && !slept)
                count_sleep(*heap, address, mapping.size, true);
        }
    }
    return first;
}

// The graphs of a pool may use the addresses of a window that is closed by now.
int ExpandableSegments::unmap_closed_windows(Heap &heap) {
    const Segment &segment = *heap.expandable;
    return heap.pool->captured ? success : windows_.unmap(heap, segment.address, segment.address + segment.size);
}

// Maps memory to all addresses that have none, by the function `map` of `memory_`, until a call fails.
int ExpandableSegments::map_all(const std::vector<Heap *> &heaps,
                                int (PhysicalMemory::*map)(Address, Segment::Mapping &)) {
    for (Heap *heap : heaps) {
        if (heap->expandable == nullptr)
            continue;
        for (auto &[address, mapping] : heap->expandable->mappings) {
            if (!mapping.asleep)
                continue;
            if (const int status = (memory_.*map)(address, mapping))
                return status;
            count_sleep(*heap, address, mapping.size, false);
        }
        if (const int status = windows_.wake(*heap))
            return status;
    }
    return success;
}

void ExpandableSegments::destroy_sleeping(const std::vector<Heap *> &heaps) {
    for (Heap *heap : heaps)
        if (heap->expandable != nullptr)
            for (auto &[address, mapping] : heap->expandable->mappings)
                memory_.destroy_for_sleep(mapping);
}

int ExpandableSegments::wake(const std::vector<Heap *> &heaps) {
    int status = success;
    for (Heap *heap : heaps)
        if (status == success && heap->expandable != nullptr)
            status = unmap_closed_windows(*heap);
    if (status == success)
        status = map_all(heaps, &PhysicalMemory::wake);
    if (status != success) { // memory that the driver fails to unmap here is there at the next attempt
        sleep_all(heaps);
        destroy_sleeping(heaps);
    }
    return status;
}

void ExpandableSegments::count_sleep(Heap &heap, Address address, std::size_t size, bool falls_asleep) {
    const auto bytes = static_cast<std::int64_t>(falls_asleep ? size : -size);
    count_reserved(statistics_, *heap.pool, heap.is_large, -bytes);
    statistics_.sleeping_bytes.add(heap.is_large, bytes);
    const Action action = falls_asleep ? Action::segment_unmap : Action::segment_map;
    history_.record_sleep(action, address, size, heap.stream, heap.expandable->stack);
}

void ExpandableSegments::remove(Heap &heap) {
    Segment *segment = heap.expandable;
    for (Block *block = segment->first; block != nullptr;) {
        Block *gone = block;
        block = block->after;
        store_.remove(gone);
    }
    auto node = segments_.extract(segment);
    if (spare_count_ < most_spare) {
        spare_[spare_count_++] = {segment->address, segment->size};
        delete segment;
    } else if (driver_.release(device_, segment->address, segment->size) == success) {
        addresses_are_spent_ = false;
        delete segment;
    } else {
        unreleased_.insert(std::move(node));
    }
}

void ExpandableSegments::retry() {
    if (memory_.forget_failures())
        for (Segment *segment : segments_)
            segment->heap->holes.each(
                [&](const Block *hole) { memory_.unmap(*segment, hole->address, hole->address + hole->size); });
    memory_.retry();
    windows_.retry();
    for (auto left = unreleased_.begin(); left != unreleased_.end();) {
        Segment *segment = *left;
        if (driver_.release(device_, segment->address, segment->size) != success) {
            ++left;
            continue;
        }
        addresses_are_spent_ = false;
        delete segment;
        left = unreleased_.erase(left);
    }
}

void ExpandableSegments::free_everything() {
    for (Segment *segment : segments_) {
        windows_.free_everything(*segment->heap);
        memory_.unmap(*segment, segment->address, segment->address + segment->size);
        driver_.release(device_, segment->address, segment->size);
        delete segment;
    }
    segments_.clear();
    while (spare_count_ > 0) {
        const Addresses &spare = spare_[--spare_count_];
        driver_.release(device_, spare.address, spare.size);
    }
    retry();
}

} // namespace tcuda
