#include "memory/host_allocator/host_heap.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "memory/host_allocator/host_sizes.hpp"

namespace tcuda {
namespace {

std::size_t bytes_before_aligned(Address address, std::size_t alignment) { return -address % alignment; }

} // namespace

HostBlock *HostHeap::take(std::size_t size, std::size_t alignment) {
    if (!is_small_host_size(size))
        return take_fitting(size, alignment);
    if (HostBlockList &kept = kept_[host_size_number(size)]; !kept.empty() && kept.first()->address % alignment == 0) {
        HostBlock *const block = kept.take();
        block->state = HostBlock::State::allocated;
        free_bytes_ -= block->size;
        return block;
    }
    HostBlock *const block = take_fitting(size, alignment);
    if (block != nullptr || !any_kept_)
        return block;
    join_kept();
    return take_fitting(size, alignment);
}

// The smallest free block of at least `size` bytes, or the smallest one that is large enough wherever it begins.
FreeHostBlocks::iterator HostHeap::find_fitting(FreeHostBlocks &free, std::size_t size, std::size_t alignment) {
    HostBlock wanted;
    wanted.size = size;
    const auto smallest = free.lower_bound(&wanted);
    if (smallest == free.end() || bytes_before_aligned((*smallest)->address, alignment) + size <= (*smallest)->size)
        return smallest;
    wanted.size = size + alignment - host_unit;
    return free.lower_bound(&wanted);
}

HostBlock *HostHeap::cut(std::size_t size, std::size_t alignment, bool cuts_whole) {
    return take_fitting(size, alignment, cuts_whole ? Cuts::all : Cuts::parts);
}

HostBlock *HostHeap::take_fitting(std::size_t size, std::size_t alignment, Cuts cuts) {
    FreeHostBlocks &free = is_small_host_size(size) ? small_ : large_;
    auto found = find_fitting(free, size, alignment);
    if (cuts == Cuts::parts) // looks at many blocks only where many segments wait to be given back
        found = std::find_if(found, free.end(), [&](const HostBlock *block) {
            return (block->segment->small || !block->is_segment()) &&
                   bytes_before_aligned(block->address, alignment) + size <= block->size;
        });
    if (found == free.end())
        return nullptr;
    HostBlock *const whole = *found;
    HostBlock *block = whole, *rest = nullptr;
    const std::size_t head = bytes_before_aligned(whole->address, alignment);
    if (!whole->segment->small && cuts == Cuts::small) {
        if (whole->size > most_host_block_size(size))
            return nullptr;
    } else {
        if (head != 0)
            block = insert(whole->segment, whole->address + head, size);
        try {
            if (whole->size > head + size)
                rest = insert(whole->segment, whole->address + head + size, whole->size - head - size);
        } catch (...) {
            if (block != whole)
                blocks_.erase(block->address);
            throw;
        }
    }
    take_out(whole);
    if (block != whole) {
        whole->size = head;
        free.insert(std::move(whole->node));
    } else if (rest != nullptr) {
        whole->size = size;
    }
    block->state = HostBlock::State::allocated;
    free_bytes_ -= block->size;
    if (rest != nullptr)
        free.insert(std::move(rest->node));
    return block;
}

void HostHeap::add(const HostSegment &segment) {
    const auto made = segments_.emplace(segment.address, segment).first;
    HostBlock *block;
    try {
        block = insert(&made->second, segment.address, segment.size);
    } catch (...) {
        segments_.erase(made);
        throw;
    }
    free_of(*block).insert(std::move(block->node));
    free_bytes_ += block->size;
}

void HostHeap::give(HostBlock *block) noexcept {
    free_bytes_ += block->size;
    block->requested = 0;
    block->stack = 0;
    if (!is_small_host_size(block->size)) {
        put_back(block);
        return;
    }
    block->state = HostBlock::State::kept;
    kept_[host_size_number(block->size)].add(block);
    any_kept_ = true;
}

void HostHeap::join_kept() noexcept {
    if (!any_kept_)
        return;
    for (HostBlockList &kept : kept_)
        while (!kept.empty())
            put_back(kept.take());
    any_kept_ = false;
}

// Puts a block into its set of free blocks, joined with the free blocks beside the block.
void HostHeap::put_back(HostBlock *block) noexcept {
    block->state = HostBlock::State::free;
    const auto at = blocks_.find(block->address);
    if (const auto right = std::next(at); right != blocks_.end()) {
        HostBlock *const other = right->second.get();
        if (other->segment == block->segment && other->state == HostBlock::State::free) {
            take_out(other);
            join(block, other);
        }
    }
    if (at != blocks_.begin()) {
        HostBlock *const other = std::prev(at)->second.get();
        if (other->segment == block->segment && other->state == HostBlock::State::free) {
            take_out(other);
            join(other, block);
            block = other;
        }
    }
    free_of(*block).insert(std::move(block->node));
}

HostBlock *HostHeap::find(Address address) const {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin())
        return nullptr;
    HostBlock *const block = std::prev(after)->second.get();
    return address - block->address < block->size ? block : nullptr;
}

HostBlock *HostHeap::idle_segment() {
    join_kept();
    // A free block that is a part of its segment is smaller than the segment, so few blocks are looked at in vain.
    for (const FreeHostBlocks *free : {&large_, &small_})
        for (auto at = free->rbegin(); at != free->rend(); ++at)
            if ((*at)->is_segment())
                return *at;
    return nullptr;
}

HostHeap::Withdrawn HostHeap::withdraw(HostBlock *block) noexcept {
    take_out(block);
    free_bytes_ -= block->size;
    return {segments_.extract(block->segment->address), blocks_.extract(block->address)};
}

HostBlock *HostHeap::restore(Withdrawn withdrawn) noexcept {
    segments_.insert(std::move(withdrawn.segment));
    return blocks_.insert(std::move(withdrawn.block)).position->second.get();
}

HostBlock *HostHeap::insert(HostSegment *segment, Address address, std::size_t size) {
    if (!spare_.empty()) {
        HostBlocks::node_type made = std::move(spare_.back());
        spare_.pop_back();
        HostBlock *const block = made.mapped().get();
        block->segment = segment;
        made.key() = block->address = address;
        block->size = size;
        blocks_.insert(std::move(made));
        return block;
    }
    auto made = std::make_unique<HostBlock>();
    HostBlock *const block = made.get();
    block->segment = segment;
    block->address = address;
    block->size = size;
    FreeHostBlocks one{block};
    block->node = one.extract(one.begin());
    blocks_.emplace(address, std::move(made));
    return block;
}

void HostHeap::take_out(HostBlock *block) noexcept {
    FreeHostBlocks &free = free_of(*block);
    block->node = free.extract(free.find(block));
}

void HostHeap::join(HostBlock *left, HostBlock *right) noexcept {
    left->size += right->size;
    HostBlocks::node_type gone = blocks_.extract(right->address);
    if (spare_.size() < most_spare)
        spare_.push_back(std::move(gone));
}

} // namespace tcuda
