#include "emulation/_cpp/kernels/races/shadow.hpp"

#include <algorithm>

namespace tcuda {
namespace {

// Most launches use little memory, for which large pages would be a waste.
constexpr std::uintptr_t least_with_large_pages = 512u << 10;

} // namespace

Shadow::Region::Region(abi::Range range)
    : range_{range.begin / unit * unit, range.end}, memory_((range_.end - range_.begin + unit) * bytes_of_cells),
      cells_(reinterpret_cast<std::uintptr_t>(memory_.begin()) - range_.begin * bytes_of_cells) {}

void Shadow::Region::expect_use(abi::Range part) const {
    if (part.end - part.begin < least_with_large_pages ||
        std::find(expected_.begin(), expected_.end(), part.begin) != expected_.end())
        return;
    expected_.push_back(part.begin);
    memory_.use_large_pages((part.begin - range_.begin) * bytes_of_cells, (part.end - part.begin) * bytes_of_cells);
}

Shadow::Shadow(abi::RaceNotes &notes, abi::Range library) : notes_(notes), groups_(notes.groups), parts_(notes.parts) {
    regions_.emplace_back(library);
    last_ = &regions_.front();
}

const Shadow::Region &Shadow::find(std::uintptr_t address) {
    const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const Region &region) {
        return address - region.range().begin < region.range().end - region.range().begin;
    });
    if (found != regions_.end())
        return *(last_ = &*found);
    const std::uintptr_t begin = address >> region_shift << region_shift;
    abi::Range range{begin, begin + (std::uintptr_t(1) << region_shift)};
    const abi::Range library = of_library().range();
    if (library.begin > address)
        range.end = std::min(range.end, library.begin);
    else
        range.begin = std::max(range.begin, (library.end + unit - 1) / unit * unit);
    regions_.emplace_back(range);
    return *(last_ = &regions_.back());
}

void Shadow::clear(ShadowCell &cell) {
    if (cell.is_split()) {
        for (unsigned part = 0; part < unit; ++part) {
            drop(parts(cell)[part].written);
            drop(parts(cell)[part].read);
        }
        notes_.parts.give_back(static_cast<unsigned>(cell.written));
    } else {
        drop(cell.written);
        drop(cell.read);
    }
    cell = {};
}

AccessStamp Shadow::copied(AccessStamp value) {
    if (!values::is_reference(value))
        return value;
    const unsigned number = new_group();
    notes_.groups[number] = group(value);
    return value >> 32 << 32 | number;
}

void Shadow::split(ShadowCell &cell) {
    const unsigned number = parts_.take();
    ShadowCell *const parts = notes_.parts[number].cells;
    parts[0] = cell;
    for (unsigned part = 1; part < unit; ++part)
        parts[part] = {copied(cell.written), copied(cell.read)};
    cell = {ShadowCell::split_as(number), 0};
}

void Shadow::join(ShadowCell &cell) {
    const ShadowCell *const all = parts(cell);
    const ShadowCell first = all[0];
    if (values::is_reference(first.written) || values::is_reference(first.read))
        return;
    for (unsigned part = 1; part < unit; ++part)
        if (all[part].written != first.written || all[part].read != first.read)
            return;
    notes_.parts.give_back(static_cast<unsigned>(cell.written));
    cell = first;
}

} // namespace tcuda
