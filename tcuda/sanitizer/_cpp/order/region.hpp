// The bytes of an array or of a range of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "driver/driver.hpp"

namespace tcuda::races {

// A dimension of an array: how many items, and how many bytes from one item to the next.
struct Dimension {
    std::int64_t count = 0;
    std::int64_t stride = 0;
    bool operator==(const Dimension &other) const { return count == other.count && stride == other.stride; }
};

// The array as the caller describes it, and the same bytes in a normal form: runs of adjacent bytes, which repeat in
// levels of positive strides. The outermost level has the largest stride.
class Region {
public:
    struct Level {
        std::int64_t count, stride;
        std::int64_t extent; // bytes from the first to behind the last byte of one item of this level
        bool operator==(const Level &other) const { return count == other.count && stride == other.stride; }
    };

    // Keeps the memory of the vectors, so that a region that is set again allocates nothing.
    void set(Address address, std::size_t itemsize, const std::vector<Dimension> &shape);

    Address address() const { return address_; }
    std::size_t itemsize() const { return itemsize_; }
    const std::vector<Dimension> &shape() const { return shape_; }

    bool empty() const { return begin_ == end_; }
    Address begin() const { return begin_; }
    Address end() const { return end_; }
    bool contiguous() const { return levels_.empty(); }

    std::int64_t run() const { return run_; }
    const std::vector<Level> &levels() const { return levels_; }
    // Whether the items of each level lie apart from each other, so that the bytes are in the order of the indices.
    bool nested() const { return nested_; }

private:
    void normalize();

    Address address_ = 0, begin_ = 0, end_ = 0;
    std::size_t itemsize_ = 0;
    std::vector<Dimension> shape_;
    std::int64_t run_ = 0;
    std::vector<Level> levels_;
    bool nested_ = true;
};

// The bytes that two regions have in common: the first one, and the place behind the last one. `exact` is false if the
// search has given up: the regions may then be disjoint.
struct Overlap {
    Address begin, end;
    bool exact;
};

std::optional<Overlap> overlap_of(const Region &left, const Region &right);
std::optional<Overlap> overlap_of(const Region &left, Address begin, Address end);

// Whether each byte of `inner` is a byte of `outer`. False also for forms that are hard to compare.
bool covers(const Region &outer, const Region &inner);

} // namespace tcuda::races
