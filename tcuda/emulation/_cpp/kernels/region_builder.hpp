// Regions: the bytes that runs of bytes cover, written as few strided layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tcuda_abi.h>

namespace tcuda {

// Runs of `run` bytes. The runs begin at the address plus each sum of multiples of the strides.
struct Region {
    static constexpr unsigned most_axes = 3;

    std::uintptr_t address;
    std::uint64_t run;
    unsigned axes = 0; // the first axis is the innermost
    std::uint64_t lengths[most_axes] = {};
    std::uint64_t strides[most_axes] = {};
};

// Makes regions of runs that come in ascending order and do not touch each other. Runs with equal sizes and distances
// become one region, and so do regions with equal layouts and distances.
//
// At most `most` regions are exact. Beyond this number, the regions are a few ranges with all runs in them, and with
// the gaps between them as wide as possible.
class RegionBuilder {
public:
    explicit RegionBuilder(std::size_t most) : most_(most) {}

    void add(std::uintptr_t begin, std::uintptr_t end);
    // Ends the input.
    std::vector<Region> take();
    // Whether the regions have no bytes but those of the runs.
    bool exact() const { return exact_; }

private:
    static constexpr std::size_t most_ranges = 32;

    void push(unsigned level, const Region &region);
    void keep(Region region);
    void flush(unsigned level);
    void give_up();
    void widen();

    struct Pending {
        bool used = false;
        Region region;
    };

    const std::size_t most_;
    bool exact_ = true;
    Pending pending_[Region::most_axes]; // the region of each level that may still grow
    std::vector<Region> regions_;
    std::vector<abi::Range> ranges_; // in place of regions_, if the regions are not exact
};

} // namespace tcuda
