#include "emulated/kernels/races/shadow.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace tcuda {
namespace {

// Most launches use little memory, for which large pages would be a waste.
constexpr std::size_t first_slabs = 2, first_pages = 64, later_pages = 512;

} // namespace

Shadow::Slab::Slab(std::size_t pages) : bytes_(pages * page_cells * sizeof(ShadowCell)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED)
        throw std::bad_alloc();
    if (pages > first_pages)
        madvise(memory_, bytes_, MADV_HUGEPAGE);
}

Shadow::Slab::~Slab() { munmap(memory_, bytes_); }

ShadowCell *Shadow::find(std::uintptr_t number) {
    const auto [place, is_new] = pages_.try_emplace(number, nullptr);
    if (is_new) {
        if (left_ == 0) {
            const std::size_t pages = slabs_.size() < first_slabs ? first_pages : later_pages;
            slabs_.emplace_back(new Slab(pages));
            next_ = slabs_.back()->cells();
            left_ = pages;
        }
        place->second = std::exchange(next_, next_ + page_cells);
        --left_;
    }
    near_[number % nears] = {number, place->second};
    return place->second;
}

std::uint64_t Shadow::copied(std::uint64_t value) {
    if (!is_reference(value))
        return value;
    const std::uint32_t number = new_group();
    groups_[number] = group(value);
    return value >> 32 << 32 | number;
}

void Shadow::split(ShadowCell &cell) {
    const std::uint32_t number = parts_.take();
    ShadowCell *const parts = parts_[number].cells;
    parts[0] = cell;
    for (unsigned part = 1; part < unit; ++part)
        parts[part] = {copied(cell.written), copied(cell.read)};
    cell = {std::uint64_t(3) << 62 | number, 0};
}

void Shadow::join(ShadowCell &cell) {
    const ShadowCell *const all = parts(cell);
    const ShadowCell first = all[0];
    if (is_reference(first.written) || is_reference(first.read))
        return;
    for (unsigned part = 1; part < unit; ++part)
        if (all[part].written != first.written || all[part].read != first.read)
            return;
    parts_.give_back(static_cast<std::uint32_t>(cell.written));
    cell = first;
}

} // namespace tcuda
