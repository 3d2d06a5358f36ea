#include "emulation/_cpp/kernels/region_builder.hpp"

#include <algorithm>
#include <functional>

namespace tcuda {
namespace {

bool same_layout(const Region &left, const Region &right, unsigned axes) {
    return left.run == right.run && left.axes >= axes && right.axes == axes &&
           std::equal(left.lengths, left.lengths + axes, right.lengths) &&
           std::equal(left.strides, left.strides + axes, right.strides);
}

std::uintptr_t end_of(const Region &region) {
    std::uintptr_t end = region.address + region.run;
    for (unsigned axis = 0; axis < region.axes; ++axis)
        end += (region.lengths[axis] - 1) * region.strides[axis];
    return end;
}

} // namespace

void RegionBuilder::add(std::uintptr_t begin, std::uintptr_t end) {
    if (exact_) {
        Region region{};
        region.address = begin;
        region.run = end - begin;
        push(0, region);
    } else {
        ranges_.push_back({begin, end});
        widen();
    }
}

// A level joins regions of `level` axes along one more axis.
void RegionBuilder::push(unsigned level, const Region &region) {
    if (level == Region::most_axes) {
        keep(region);
        return;
    }
    Pending &pending = pending_[level];
    if (pending.used) {
        Region &grown = pending.region;
        if (same_layout(grown, region, level)) {
            if (grown.axes == level) {
                grown.lengths[level] = 2;
                grown.strides[level] = region.address - grown.address;
                ++grown.axes;
                return;
            }
            if (region.address == grown.address + grown.lengths[level] * grown.strides[level]) {
                ++grown.lengths[level];
                return;
            }
        }
        flush(level);
        if (!exact_) {
            ranges_.push_back({region.address, end_of(region)});
            widen();
            return;
        }
    }
    pending.used = true;
    pending.region = region;
}

// Two runs are no pattern yet, and readers have less work with two ranges than with one region with a gap.
void RegionBuilder::keep(Region region) {
    const bool pair = region.axes == 1 && region.lengths[0] == 2;
    const std::uintptr_t second = region.address + region.strides[0];
    if (pair)
        region.axes = 0;
    regions_.push_back(region);
    if (pair) {
        region.address = second;
        regions_.push_back(region);
    }
    if (regions_.size() > most_)
        give_up();
}

void RegionBuilder::flush(unsigned level) {
    Pending &pending = pending_[level];
    if (!pending.used)
        return;
    pending.used = false;
    const Region region = pending.region;
    // A region without the axis of its level may be followed by one with the axis. The two have different layouts, so
    // the region goes on alone.
    push(level + 1, region);
}

// Replaces the regions by ranges around them. The regions that may still grow come after all others.
void RegionBuilder::give_up() {
    exact_ = false;
    for (const Region &region : regions_) {
        ranges_.push_back({region.address, end_of(region)});
        widen();
    }
    regions_.clear();
    for (unsigned level = Region::most_axes; level-- != 0;) {
        if (pending_[level].used)
            ranges_.push_back({pending_[level].region.address, end_of(pending_[level].region)});
        pending_[level].used = false;
    }
    widen();
}

// Keeps the widest gaps between the ranges.
void RegionBuilder::widen() {
    if (ranges_.size() < 2 * most_ranges)
        return;
    std::vector<std::uintptr_t> gaps;
    for (std::size_t place = 1; place < ranges_.size(); ++place)
        gaps.push_back(ranges_[place].begin - ranges_[place - 1].end);
    std::nth_element(gaps.begin(), gaps.begin() + (most_ranges - 1), gaps.end(), std::greater<>());
    const std::uintptr_t least = gaps[most_ranges - 1] + 1;
    std::vector<abi::Range> kept{ranges_.front()};
    for (std::size_t place = 1; place < ranges_.size(); ++place) {
        if (ranges_[place].begin - kept.back().end >= least)
            kept.push_back(ranges_[place]);
        else
            kept.back().end = ranges_[place].end;
    }
    ranges_ = std::move(kept);
}

std::vector<Region> RegionBuilder::take() {
    for (unsigned level = 0; level < Region::most_axes; ++level)
        flush(level);
    for (const abi::Range &range : ranges_) {
        Region region{};
        region.address = range.begin;
        region.run = range.end - range.begin;
        regions_.push_back(region);
    }
    return std::move(regions_);
}

} // namespace tcuda
