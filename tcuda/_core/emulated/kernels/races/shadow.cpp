#include "emulated/kernels/races/shadow.hpp"

#include <cstdlib>
#include <new>

namespace tcuda {

void Shadow::Release::operator()(ShadowCell *cells) const { std::free(cells); }

ShadowCell *Shadow::find(std::uintptr_t number) {
    auto &cells = pages_[number];
    if (cells == nullptr) {
        cells.reset(static_cast<ShadowCell *>(std::calloc(page_cells, sizeof(ShadowCell))));
        if (cells == nullptr)
            throw std::bad_alloc();
    }
    near_[number % nears] = {number, cells.get()};
    return cells.get();
}

std::uint32_t Shadow::new_group() {
    if (free_groups_.empty()) {
        groups_.push_back({});
        return static_cast<std::uint32_t>(groups_.size() - 1);
    }
    const std::uint32_t number = free_groups_.back();
    free_groups_.pop_back();
    groups_[number] = {};
    return number;
}

std::uint64_t Shadow::copied(std::uint64_t value) {
    if (!is_reference(value))
        return value;
    const std::uint32_t number = new_group();
    groups_[number] = group(value);
    return reference(number, rivals(value), phase(value));
}

void Shadow::split(ShadowCell &cell) {
    std::uint32_t number;
    if (free_parts_.empty()) {
        number = static_cast<std::uint32_t>(parts_.size() / unit);
        parts_.resize(parts_.size() + unit);
    } else {
        number = free_parts_.back();
        free_parts_.pop_back();
    }
    ShadowCell *const parts = &parts_[static_cast<std::size_t>(number) * unit];
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
    free_parts_.push_back(static_cast<std::uint32_t>(cell.written));
    cell = first;
}

} // namespace tcuda
