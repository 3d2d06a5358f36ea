#include "emulation/_cpp/memory/emulated_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "emulation/_cpp/memory/pointer.hpp"

namespace tcuda {
namespace {

// The parts of the file. No part of the file is used twice for physical memory: so new physical memory is all zeros,
// and other processes may keep old physical memory.
constexpr std::size_t first_header = std::size_t(1) << 56;
constexpr std::size_t first_physical = std::size_t(1) << 57;
constexpr std::size_t end_of_file = std::size_t(1) << 60;
constexpr std::size_t import_unit = std::size_t(64) << 10; // a multiple of the page size of every system

// Facts of exported physical memory, for the process that imports the memory.
struct Header {
    std::uint64_t mark, offset, size;
};
constexpr std::uint64_t header_mark = 0x7463756461206970;

std::size_t header_of(std::size_t offset) {
    return first_header + (offset - first_physical) / EmulatedMemory::page * sizeof(Header);
}

// Replaces pages by new private pages.
bool replace(std::uintptr_t address, std::size_t size, int protection) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    return mmap(host_pointer(address), size, protection, flags, -1, 0) != MAP_FAILED;
}

} // namespace

EmulatedMemory::EmulatedMemory(std::size_t limit) : limit_(limit), next_offset_(first_physical) {}

EmulatedMemory::~EmulatedMemory() {
    for (const auto &[address, block] : imports_)
        munmap(host_pointer(block.mapping.address), block.mapping.size);
    for (const auto &[address, size] : reservations_)
        munmap(host_pointer(address), size);
    for (const Kept &kept : kept_)
        if (kept.how == Return::unreserve)
            munmap(host_pointer(kept.range.address), kept.range.size);
    if (in_child())
        return;
    for (const auto &[number, physical] : physical_)
        drop(*physical);
    for (const auto &[address, mapping] : mappings_)
        drop(*mapping.physical);
}

// A process may fork before it uses the memory. Each child then has a memory of its own.
bool EmulatedMemory::in_child() const {
    const unsigned process = forks();
    unsigned owner = nobody;
    return !owner_.compare_exchange_strong(owner, process, std::memory_order_relaxed) && owner != process;
}

// The file is made when the memory is first used, because most processes use few of the devices.
const std::shared_ptr<SharedFile> &EmulatedMemory::file() {
    if (!asked_file_) {
        file_ = SharedFile::create();
        asked_file_ = true;
    }
    return file_;
}

EmulatedArena &EmulatedMemory::arena() {
    if (arena_ == nullptr)
        arena_ = std::make_unique<EmulatedArena>(file(), first_header);
    return *arena_;
}

// Blocks

std::uintptr_t EmulatedMemory::allocate(std::size_t size, bool exportable) {
    if (in_child())
        return 0;
    const std::lock_guard lock(mutex_);
    // The size is compared before it is rounded: rounding the largest sizes would overflow.
    if (size == 0 || size > limit_ || rounded(size) > limit_ - used_)
        return 0;
    const std::uintptr_t address = arena().allocate(rounded(size));
    if (address == 0)
        return 0;
    try {
        blocks_.emplace(address, LiveBlock{size, exportable});
    } catch (...) {
        arena_->release(address, rounded(size));
        throw;
    }
    used_ += rounded(size);
    return address;
}

bool EmulatedMemory::release(std::uintptr_t address) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end())
        return false;
    const std::size_t size = rounded(found->second.size);
    if (keeps_freed_)
        kept_.reserve(kept_.size() + 1);
    blocks_.erase(found);
    used_ -= size;
    if (keeps_freed_)
        keep(Return::release, address, size);
    else
        arena_->release(address, size);
    return true;
}

void EmulatedMemory::keep_freed() {
    const std::lock_guard lock(mutex_);
    keeps_freed_ = true;
}

std::size_t EmulatedMemory::kept() const {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

void EmulatedMemory::give_back() {
    if (in_child())
        return;
    const std::lock_guard lock(mutex_);
    for (const auto &[how, range] : kept_) {
        if (how == Return::release)
            arena_->release(range.address, range.size);
        else if (how == Return::unreserve)
            munmap(host_pointer(range.address), range.size);
        else if (is_reserved_and_unmapped(range))
            replace(range.address, range.size, PROT_NONE);
    }
    kept_.clear();
    kept_bytes_ = 0;
}

// The caller has reserved room for one more element.
void EmulatedMemory::keep(Return how, std::uintptr_t address, std::size_t size) noexcept {
    kept_.push_back({how, {address, size}});
    kept_bytes_ += size;
}

bool EmulatedMemory::is_reserved_and_unmapped(Block range) const {
    const auto reservation = reservations_.upper_bound(range.address);
    if (reservation == reservations_.begin() ||
        range.address - std::prev(reservation)->first >= std::prev(reservation)->second)
        return false;
    const auto next = mappings_.lower_bound(range.address);
    const bool overlaps_next = next != mappings_.end() && next->first < range.address + range.size;
    return !overlaps_next &&
           (next == mappings_.begin() || std::prev(next)->first + std::prev(next)->second.size <= range.address);
}

void EmulatedMemory::adopt(std::uintptr_t address, std::size_t size) {
    if (block_at(address).has_value())
        return;
    const std::lock_guard lock(mutex_);
    adopted_[address] = size;
}

void EmulatedMemory::disown(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    adopted_.erase(address);
}

std::optional<EmulatedMemory::Block> EmulatedMemory::block_at(std::uintptr_t address) const {
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(address);
    if (after != blocks_.begin()) {
        const auto &[start, block] = *std::prev(after);
        if (address - start < block.size)
            return Block{start, block.size};
    }
    if (!imports_.empty()) {
        const auto later = imports_.upper_bound(address);
        if (later != imports_.begin() && address - std::prev(later)->first < std::prev(later)->second.size)
            return Block{std::prev(later)->first, std::prev(later)->second.size};
    }
    if (!adopted_.empty()) {
        const auto later = adopted_.upper_bound(address);
        if (later != adopted_.begin() && address - std::prev(later)->first < std::prev(later)->second)
            return Block{std::prev(later)->first, std::prev(later)->second};
    }
    const auto next = mapped_.upper_bound(address);
    if (next == mapped_.begin() || address >= std::prev(next)->second)
        return std::nullopt;
    const auto [begin, end] = *std::prev(next);
    return Block{begin, end - begin};
}

bool EmulatedMemory::is_unmapped(std::uintptr_t address) const {
    {
        const std::lock_guard lock(mutex_);
        const auto after = reservations_.upper_bound(address);
        if (after == reservations_.begin() || address - std::prev(after)->first >= std::prev(after)->second)
            return false;
    }
    return !block_at(address).has_value();
}

std::vector<EmulatedMemory::Block> EmulatedMemory::bounds() const {
    const std::lock_guard lock(mutex_);
    std::vector<Block> found;
    const auto add = [&](const auto &ranges, auto size_of) {
        if (!ranges.empty()) {
            const std::uintptr_t begin = ranges.begin()->first;
            found.push_back({begin, ranges.rbegin()->first + size_of(ranges.rbegin()->second) - begin});
        }
    };
    const auto of_range = [](const auto &range) { return range.size; };
    add(blocks_, of_range);
    add(imports_, of_range);
    add(mappings_, of_range);
    add(adopted_, [](std::size_t size) { return size; });
    return found;
}

// Blocks in several processes

int EmulatedMemory::descriptor() {
    if (in_child())
        return -1;
    const std::lock_guard lock(mutex_);
    return file() == nullptr ? -1 : file_->descriptor();
}

std::optional<EmulatedMemory::Place> EmulatedMemory::place_of(std::uintptr_t address) const {
    if (in_child())
        return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin())
        return std::nullopt;
    const auto &[start, block] = *std::prev(after);
    if (address - start >= block.size || !block.exportable || file_ == nullptr)
        return std::nullopt;
    return Place{arena_->offset_of(start), block.size};
}

std::uintptr_t EmulatedMemory::import_block(int descriptor, Place place) {
    if (in_child() || place.size == 0 || place.offset >= first_header || place.size > first_header - place.offset)
        return 0;
    const std::shared_ptr<SharedFile> source = SharedFile::open(descriptor);
    if (source == nullptr)
        return 0;
    const std::size_t before = place.offset % import_unit;
    const std::size_t length = (before + place.size + import_unit - 1) / import_unit * import_unit;
    const std::lock_guard lock(mutex_);
    // The mapping keeps the file alive, so the descriptor is not needed any more.
    const std::uintptr_t mapping = source->map(0, place.offset - before, length);
    if (mapping == 0)
        return 0;
    try {
        imports_.emplace(mapping + before, Import{place.size, {mapping, length}});
    } catch (...) {
        munmap(host_pointer(mapping), length);
        throw;
    }
    return mapping + before;
}

bool EmulatedMemory::close_import(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = imports_.find(address);
    if (found == imports_.end())
        return false;
    munmap(host_pointer(found->second.mapping.address), found->second.mapping.size);
    imports_.erase(found);
    return true;
}

// Virtual memory

bool EmulatedMemory::reserve(std::size_t size, std::uintptr_t *address) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    // One page more than requested, so that the reservation can begin at a page.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = size == 0 ? MAP_FAILED : mmap(nullptr, size + page, PROT_NONE, flags, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    const auto start = reinterpret_cast<std::uintptr_t>(memory);
    *address = (start + page - 1) / page * page;
    if (*address > start)
        munmap(memory, *address - start);
    munmap(host_pointer(*address + size), start + page - *address);
    try {
        reservations_.emplace(*address, size);
    } catch (...) {
        munmap(host_pointer(*address), size);
        throw;
    }
    return true;
}

bool EmulatedMemory::unreserve(std::uintptr_t address, std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found = reservations_.find(address);
    const auto mapping = mappings_.lower_bound(address);
    const bool mapped = mapping != mappings_.end() && mapping->first < address + size;
    if (found == reservations_.end() || found->second != size || mapped)
        return false;
    if (keeps_freed_) {
        kept_.reserve(kept_.size() + 1);
        keep(Return::unreserve, address, size);
    } else {
        munmap(host_pointer(address), size);
    }
    reservations_.erase(found);
    return true;
}

bool EmulatedMemory::create(std::size_t size, std::uint64_t *physical) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    discard_abandoned();
    if (size == 0 || size % page != 0 || size > limit_ - used_ || size > end_of_file - next_offset_)
        return false;
    auto made = std::make_shared<Physical>();
    made->size = size;
    made->offset = next_offset_;
    made->file = file();
    physical_.emplace(next_physical_, std::move(made));
    *physical = next_physical_++;
    next_offset_ += size;
    used_ += size;
    return true;
}

bool EmulatedMemory::destroy(std::uint64_t physical) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    const auto found = physical_.find(physical);
    if (found == physical_.end())
        return false;
    drop(*found->second);
    physical_.erase(found);
    discard_abandoned();
    return true;
}

bool EmulatedMemory::map(std::uintptr_t address, std::size_t size, std::uint64_t physical) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    const auto found = physical_.find(physical);
    const auto reservation = reservations_.upper_bound(address);
    const auto next = mappings_.lower_bound(address);
    if (found == physical_.end() || found->second->size != size || reservation == reservations_.begin())
        return false;
    const auto &[start, reserved] = *std::prev(reservation);
    const bool within = address % page == 0 && address - start <= reserved - size && size <= reserved;
    const bool overlaps =
        (next != mappings_.end() && next->first < address + size) ||
        (next != mappings_.begin() && std::prev(next)->first + std::prev(next)->second.size > address);
    if (!within || overlaps)
        return false;
    Physical &mapped = *found->second;
    const auto range = mapped_.emplace(address, address + size).first;
    try {
        mappings_.emplace(address, Mapping{size, found->second});
    } catch (...) {
        mapped_.erase(range);
        throw;
    }
    const bool done = mapped.file == nullptr ? replace(address, size, PROT_READ | PROT_WRITE)
                                             : mapped.file->map(address, mapped.offset, size) != 0;
    if (done) {
        ++mapped.references;
        join_mapped(range);
    } else {
        mappings_.erase(address);
        mapped_.erase(range);
    }
    return done;
}

// Joins a mapped range with the ranges that it touches.
void EmulatedMemory::join_mapped(std::map<std::uintptr_t, std::uintptr_t>::iterator range) noexcept {
    const auto after = std::next(range);
    if (after != mapped_.end() && after->first == range->second) {
        range->second = after->second;
        mapped_.erase(after);
    }
    if (range != mapped_.begin() && std::prev(range)->second == range->first) {
        std::prev(range)->second = range->second;
        mapped_.erase(range);
    }
}

bool EmulatedMemory::unmap(std::uintptr_t address, std::size_t size) {
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    const auto found = mappings_.find(address);
    if (found == mappings_.end() || found->second.size != size)
        return false;
    if (keeps_freed_)
        kept_.reserve(kept_.size() + 1);
    const auto range = std::prev(mapped_.upper_bound(address));
    const std::uintptr_t end = range->second;
    const bool splits = address + size < end;
    if (splits)
        mapped_.emplace(address + size, end);
    if (!replace(address, size, keeps_freed_ ? PROT_READ | PROT_WRITE : PROT_NONE)) {
        if (splits)
            mapped_.erase(address + size);
        return false;
    }
    if (range->first == address)
        mapped_.erase(range);
    else
        range->second = address;
    if (keeps_freed_)
        keep(Return::unmap, address, size);
    drop(*found->second.physical);
    mappings_.erase(found);
    unmaps_.fetch_add(1, std::memory_order_relaxed);
    return true;
}

// Lets a reference to physical memory go.
void EmulatedMemory::drop(Physical &physical) {
    if (--physical.references != 0)
        return;
    if (!physical.imported)
        used_ -= physical.size;
    if (physical.file == nullptr)
        return;
    const bool discarded = physical.held && physical.file->let_go(physical.offset, physical.size);
    if (physical.imported || discarded)
        return;
    if (!physical.held)
        physical.file->discard(physical.offset, physical.size);
    else
        abandoned_.push_back({physical.offset, physical.size});
}

// Another process gives the pages back if it lets them go last. Nobody does if the last holder is a descriptor that was
// never opened, or a process that was killed.
void EmulatedMemory::discard_abandoned() {
    if (abandoned_.empty())
        return;
    const auto is_free = [this](const Place &place) { return file_->discard_unless_held(place.offset, place.size); };
    abandoned_.erase(std::remove_if(abandoned_.begin(), abandoned_.end(), is_free), abandoned_.end());
}

// Physical memory in several processes

bool EmulatedMemory::export_physical(std::uint64_t physical, int *descriptor) {
    *descriptor = -1;
    if (in_child())
        return false;
    const std::lock_guard lock(mutex_);
    const auto found = physical_.find(physical);
    if (found == physical_.end() || found->second->file == nullptr)
        return false;
    Physical &exported = *found->second;
    if (!exported.held) { // imported memory is held, and has its header
        const Header header{header_mark, exported.offset, exported.size};
        abandoned_.reserve(abandoned_.size() + physical_.size()); // so that drop() cannot fail
        if (!exported.file->write(header_of(exported.offset), &header, sizeof header) ||
            !exported.file->hold(exported.offset, exported.size))
            return false;
        exported.held = true;
    }
    *descriptor = exported.file->share(exported.offset, exported.size);
    return *descriptor >= 0;
}

bool EmulatedMemory::import_physical(int descriptor, std::uint64_t *physical) {
    if (in_child())
        return false;
    const std::shared_ptr<SharedFile> source = SharedFile::open(descriptor);
    const off_t place = source == nullptr ? -1 : lseek(descriptor, 0, SEEK_CUR);
    const auto offset = static_cast<std::size_t>(place);
    if (place < 0 || offset < first_physical || offset >= end_of_file || offset % page != 0)
        return false;
    Header header{};
    if (!source->read(header_of(offset), &header, sizeof header) || header.mark != header_mark ||
        header.offset != offset || header.size == 0 || header.size > end_of_file - offset)
        return false;
    auto made = std::make_shared<Physical>();
    made->size = header.size;
    made->offset = offset;
    made->file = source;
    made->imported = made->held = true;
    const std::lock_guard lock(mutex_);
    const auto added = physical_.emplace(next_physical_, std::move(made)).first;
    if (!source->hold(offset, header.size)) {
        physical_.erase(added);
        return false;
    }
    *physical = next_physical_++;
    return true;
}

std::size_t EmulatedMemory::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::size_t EmulatedMemory::live() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() + imports_.size() + mappings_.size() + reservations_.size();
}

} // namespace tcuda
