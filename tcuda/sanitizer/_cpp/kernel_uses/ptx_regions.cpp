#include "sanitizer/_cpp/kernel_uses/ptx_regions.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr unsigned widest_cell = 16;
constexpr std::int64_t farthest = std::int64_t(1) << 40;

} // namespace

std::uint32_t Regions::add(Region::Kind kind, std::int64_t offset, std::int64_t size) {
    Region region;
    region.kind = kind;
    region.offset = offset;
    region.size = size;
    regions_.push_back(std::move(region));
    return static_cast<std::uint32_t>(regions_.size() - 1);
}

bool Regions::store(std::uint32_t number, bool is_exact, std::int64_t offset, unsigned bytes, Value value) {
    Region &region = regions_[number];
    if (value == Values::none || value == Values::no_pointer || region.kind == Region::Kind::module ||
        region.kind == Region::Kind::entry_argument)
        return false; // memory without cells holds numbers
    is_exact = is_exact && offset > -farthest && offset < farthest;
    const auto place = std::make_pair(offset, bytes);
    if (!is_exact || (region.cells.size() >= most_cells && region.cells.count(place) == 0))
        return region.anywhere.add(values_, value);
    return region.cells[place].add(values_, value);
}

bool Regions::copy(std::uint32_t from, std::uint32_t to) {
    if (from == to)
        return false;
    bool is_new = false;
    if (regions_[from].kind == Region::Kind::module || regions_[from].kind == Region::Kind::entry_argument)
        return store(to, false, 0, pointer_bytes, load(from, false, 0, pointer_bytes));
    if (const Value value = regions_[from].anywhere.value(); value != Values::none)
        is_new = store(to, false, 0, pointer_bytes, value);
    for (const auto &[place, held] : regions_[from].cells)
        is_new = store(to, true, place.first, place.second, held.value()) || is_new;
    return is_new;
}

Value Regions::load_argument(const Region &region, bool is_exact, std::int64_t offset, unsigned bytes) {
    const bool is_inside = is_exact && offset >= 0 && offset + bytes <= region.size;
    if (is_exact && !is_inside)
        return values_.foreign();
    const Value value = is_inside && bytes <= pointer_bytes
                            ? values_.of({Origin::Kind::parameter, region.offset + offset, bytes})
                            : values_.of({Origin::Kind::any_word, region.offset, region.size});
    return bytes < pointer_bytes ? values_.part(value) : value;
}

Value Regions::load(std::uint32_t number, bool is_exact, std::int64_t offset, unsigned bytes) {
    const Region &region = regions_[number];
    if (region.kind == Region::Kind::entry_argument)
        return load_argument(region, is_exact && offset > -farthest && offset < farthest, offset, bytes);
    if (region.kind == Region::Kind::module)
        return bytes < pointer_bytes ? values_.part(values_.foreign()) : values_.foreign();
    Value value = region.anywhere.value(), pieces = Values::none;
    if (!is_exact || offset < -farthest || offset > farthest) {
        value = content(number);
    } else {
        for (auto cell = region.cells.lower_bound({offset - widest_cell, 0});
             cell != region.cells.end() && cell->first.first < offset + bytes; ++cell) {
            const auto [begin, size] = cell->first;
            if (begin + size <= offset)
                continue;
            if (begin <= offset && begin + size >= offset + bytes)
                value = values_.either(value, cell->second.value());
            else
                pieces = pieces == Values::none ? cell->second.value() : values_.sum(pieces, cell->second.value());
        }
        if (pieces != Values::none)
            value = values_.either(value, values_.whole(pieces));
    }
    if (value == Values::none)
        return Values::no_pointer;
    return bytes < pointer_bytes ? values_.part(value) : values_.whole(value);
}

Value Regions::content(std::uint32_t number) {
    const Region &region = regions_[number];
    Value value = region.anywhere.value();
    for (const auto &cell : region.cells)
        value = values_.either(value, cell.second.value());
    return value == Values::none ? Values::no_pointer : value;
}

} // namespace tcuda::kernel_uses::ptx
