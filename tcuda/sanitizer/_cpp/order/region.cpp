#include "sanitizer/_cpp/order/region.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tcuda::races {
namespace {

using Wide = __int128; // products of strides and counts of any array fit

constexpr int most_steps = 4096; // of one search; a search that needs more gives up

// A part of a region: the levels from `level` on, at another place.
struct Part {
    std::int64_t begin;
    const Region::Level *levels;
    std::size_t depth; // the number of levels
    std::int64_t run;
    bool nested;

    explicit Part(const Region &region)
        : begin(static_cast<std::int64_t>(region.begin())), levels(region.levels().data()),
          depth(region.levels().size()), run(region.run()), nested(region.nested()) {}

    std::int64_t extent() const { return depth == 0 ? run : levels->stride * (levels->count - 1) + levels->extent; }
    std::int64_t end() const { return begin + extent(); }
    Part item(std::int64_t index) const {
        Part part = *this;
        part.begin += levels->stride * index;
        ++part.levels;
        --part.depth;
        return part;
    }
};

// The first common byte and the place behind the last one.
struct Found {
    bool any = false;
    std::int64_t begin = 0, end = 0;

    void add(std::int64_t from, std::int64_t to) {
        begin = any ? std::min(begin, from) : from;
        end = any ? std::max(end, to) : to;
        any = true;
    }
};

std::int64_t floor_of(std::int64_t number, std::int64_t divisor) {
    const std::int64_t quotient = number / divisor;
    return quotient - (number % divisor != 0 && (number < 0) != (divisor < 0));
}
std::int64_t ceiling_of(std::int64_t number, std::int64_t divisor) { return -floor_of(-number, divisor); }

// The inverse of `number` modulo `modulus`; the two have no common divisor.
std::int64_t inverse_of(std::int64_t number, std::int64_t modulus) {
    std::int64_t rest = modulus, next = number % modulus, factor = 0, next_factor = 1;
    while (next != 0) {
        const std::int64_t quotient = rest / next;
        rest = std::exchange(next, rest - quotient * next);
        factor = std::exchange(next_factor, factor - quotient * next_factor);
    }
    return modulus == 1 ? 0 : (factor % modulus + modulus) % modulus;
}

// One search for the common bytes of two regions.
class Search {
public:
    bool gave_up() const { return steps_ < 0; }

    Found find(const Part &left, const Part &right) {
        const std::int64_t from = std::max(left.begin, right.begin), to = std::min(left.end(), right.end());
        Found found;
        if (from >= to || gave_up())
            return found;
        if (--steps_ < 0)
            return found;
        if (left.depth == 0 && right.depth == 0)
            found.add(from, to);
        else if (left.depth == 0)
            found = within(right, from, to);
        else if (right.depth == 0)
            found = within(left, from, to);
        else if (left.levels->stride == right.levels->stride)
            found = find_parallel(left, right);
        else if (left.depth == 1 && right.depth == 1)
            found = find_progressions(left, right);
        else if (left.levels->stride > right.levels->stride)
            found = find_in_items(left, right);
        else
            found = find_in_items(right, left);
        return found;
    }

private:
    // The bytes of `part` in a range.
    Found within(const Part &part, std::int64_t from, std::int64_t to) {
        Found found;
        if (!part.nested) {
            Part range = part;
            range.begin = from;
            range.run = to - from;
            range.depth = 0;
            return find_in_items(part, range);
        }
        std::int64_t first = 0, last = 0;
        if (first_from(part, from, &first) && first < to && last_before(part, to, &last) && last >= from)
            found.add(first, last + 1);
        return found;
    }

    static bool first_from(const Part &part, std::int64_t from, std::int64_t *byte) {
        if (from <= part.begin)
            return *byte = part.begin, true;
        if (from >= part.end())
            return false;
        if (part.depth == 0)
            return *byte = from, true;
        const std::int64_t index = std::min((from - part.begin) / part.levels->stride, part.levels->count - 1);
        if (first_from(part.item(index), from, byte))
            return true;
        return index + 1 < part.levels->count && first_from(part.item(index + 1), from, byte);
    }

    static bool last_before(const Part &part, std::int64_t to, std::int64_t *byte) {
        if (to >= part.end())
            return *byte = part.end() - 1, true;
        if (to <= part.begin)
            return false;
        if (part.depth == 0)
            return *byte = to - 1, true;
        const std::int64_t index = std::min((to - 1 - part.begin) / part.levels->stride, part.levels->count - 1);
        return last_before(part.item(index), to, byte);
    }

    // Both outermost levels have the same stride, as views of the same array do. So it is enough to compare one item of
    // each for every distance of their indices.
    Found find_parallel(const Part &left, const Part &right) {
        const std::int64_t stride = left.levels->stride, distance = right.begin - left.begin;
        const std::int64_t lefts = left.levels->count, rights = right.levels->count;
        const std::int64_t from = std::max(ceiling_of(distance - left.levels->extent + 1, stride), 1 - rights);
        const std::int64_t to = std::min(floor_of(distance + right.levels->extent - 1, stride), lefts - 1);
        Found found;
        for (std::int64_t ahead = from; ahead <= to && !gave_up(); ++ahead) {
            const Found one = find(left.item(ahead), right.item(0));
            if (!one.any)
                continue;
            const std::int64_t first = std::max<std::int64_t>(0, -ahead);
            const std::int64_t last = std::min(lefts - 1 - ahead, rights - 1);
            found.add(one.begin + first * stride, one.end + last * stride);
        }
        return found;
    }

    // Runs that repeat with two different strides meet where a linear equation has a solution.
    Found find_progressions(const Part &left, const Part &right) {
        const std::int64_t divisor = std::gcd(left.levels->stride, right.levels->stride);
        const std::int64_t left_step = left.levels->stride / divisor, right_step = right.levels->stride / divisor;
        const std::int64_t inverse = inverse_of(left_step, right_step);
        const std::int64_t distance = right.begin - left.begin;
        const std::int64_t from = ceiling_of(distance - left.run + 1, divisor);
        const std::int64_t to = floor_of(distance + right.run - 1, divisor);
        Found found;
        for (std::int64_t ahead = from; ahead <= to; ++ahead) { // left index * left step - right index * right step
            if (--steps_ < 0)
                break;
            const std::int64_t rest = (ahead % right_step + right_step) % right_step;
            const auto left_index = static_cast<std::int64_t>(Wide(rest) * inverse % right_step);
            const auto right_index = static_cast<std::int64_t>((Wide(left_index) * left_step - ahead) / right_step);
            const std::int64_t first = std::max<std::int64_t>(0, ceiling_of(-right_index, left_step));
            const std::int64_t last = std::min(floor_of(left.levels->count - 1 - left_index, right_step),
                                               floor_of(right.levels->count - 1 - right_index, left_step));
            if (first > last)
                continue;
            const auto place = [&](std::int64_t turn) {
                const std::int64_t lefts = left.begin + (left_index + turn * right_step) * left.levels->stride;
                const std::int64_t rights = right.begin + (right_index + turn * left_step) * right.levels->stride;
                return std::pair(std::max(lefts, rights), std::min(lefts + left.run, rights + right.run));
            };
            found.add(place(first).first, place(last).second);
        }
        return found;
    }

    // Looks at each item of `outer` that lies around bytes of `inner`, from both ends.
    Found find_in_items(const Part &outer, const Part &inner) {
        const std::int64_t stride = outer.levels->stride;
        const std::int64_t from =
            std::max<std::int64_t>(0, ceiling_of(inner.begin - outer.begin - outer.levels->extent + 1, stride));
        const std::int64_t to = std::min(outer.levels->count - 1, floor_of(inner.end() - 1 - outer.begin, stride));
        Found found;
        std::int64_t index = from;
        for (; index <= to && !gave_up() && !found.any; ++index)
            if (const Found one = find(outer.item(index), inner); one.any)
                found.add(one.begin, one.end);
        if (outer.nested && inner.nested) {
            for (std::int64_t last = to; last >= index && !gave_up(); --last)
                if (const Found one = find(outer.item(last), inner); one.any) {
                    found.add(one.begin, one.end);
                    break;
                }
        } else {
            for (; index <= to && !gave_up(); ++index)
                if (const Found one = find(outer.item(index), inner); one.any)
                    found.add(one.begin, one.end);
        }
        return found;
    }

    int steps_ = most_steps;
};

bool part_covers(const Part &outer, const Part &inner) {
    if (inner.begin < outer.begin || inner.end() > outer.end())
        return false;
    if (outer.depth == 0)
        return true;
    if (inner.depth < outer.depth) { // the inner part may lie within one item
        const std::int64_t index = (inner.begin - outer.begin) / outer.levels->stride;
        return index < outer.levels->count && part_covers(outer.item(index), inner);
    }
    if (inner.levels->stride != outer.levels->stride)
        return false;
    const std::int64_t index = (inner.begin - outer.begin) / outer.levels->stride;
    return index + inner.levels->count <= outer.levels->count && part_covers(outer.item(index), inner.item(0));
}

} // namespace

void Region::set(Address address, std::size_t itemsize, const std::vector<Dimension> &shape) {
    address_ = address;
    itemsize_ = itemsize;
    shape_.assign(shape.begin(), shape.end());
    normalize();
}

void Region::normalize() {
    levels_.clear();
    nested_ = true;
    begin_ = end_ = address_;
    run_ = static_cast<std::int64_t>(itemsize_);
    if (run_ == 0)
        return;
    for (const Dimension &dimension : shape_) {
        if (dimension.count <= 0) {
            levels_.clear();
            begin_ = end_ = address_;
            run_ = 0;
            return;
        }
        if (dimension.count == 1 || dimension.stride == 0)
            continue;
        Level level{dimension.count, dimension.stride, 0};
        if (level.stride < 0) {
            begin_ -= static_cast<Address>(-level.stride) * static_cast<Address>(level.count - 1);
            level.stride = -level.stride;
        }
        levels_.push_back(level);
    }
    std::sort(levels_.begin(), levels_.end(),
              [](const Level &left, const Level &right) { return left.stride < right.stride; });
    std::size_t kept = 0; // innermost first
    std::int64_t extent = run_;
    for (Level level : levels_) {
        Level *const below = kept == 0 ? nullptr : &levels_[kept - 1];
        if (kept == 0 && level.stride <= run_) { // the runs touch or overlap
            run_ += level.stride * (level.count - 1);
            extent = run_;
        } else if (below != nullptr && level.stride % below->stride == 0 &&
                   level.stride / below->stride <= below->count) { // continues the level below
            below->count += level.stride / below->stride * (level.count - 1);
            extent = below->stride * (below->count - 1) + below->extent;
        } else {
            nested_ = nested_ && level.stride >= extent;
            level.extent = extent;
            levels_[kept++] = level;
            extent += level.stride * (level.count - 1);
        }
    }
    levels_.resize(kept);
    std::reverse(levels_.begin(), levels_.end());
    end_ = begin_ + static_cast<Address>(extent);
}

std::optional<Overlap> overlap_of(const Region &left, const Region &right) {
    const Address from = std::max(left.begin(), right.begin()), to = std::min(left.end(), right.end());
    if (from >= to)
        return std::nullopt;
    if (left.contiguous() && right.contiguous())
        return Overlap{from, to, true};
    Search search;
    const Found found = search.find(Part(left), Part(right));
    if (search.gave_up())
        return Overlap{from, to, false};
    if (!found.any)
        return std::nullopt;
    return Overlap{static_cast<Address>(found.begin), static_cast<Address>(found.end), true};
}

std::optional<Overlap> overlap_of(const Region &left, Address begin, Address end) {
    if (left.contiguous()) {
        const Address from = std::max(left.begin(), begin), to = std::min(left.end(), end);
        return from < to ? std::optional(Overlap{from, to, true}) : std::nullopt;
    }
    Region range;
    range.set(begin, end - begin, {});
    return overlap_of(left, range);
}

bool covers(const Region &outer, const Region &inner) {
    if (inner.begin() < outer.begin() || inner.end() > outer.end())
        return false;
    return outer.contiguous() || part_covers(Part(outer), Part(inner));
}

} // namespace tcuda::races
