// The memory of a kernel that belongs to the kernel alone: stacks, shared memory, arguments of functions. The values
// that the kernel stores there can be loaded again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_held.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_values.hpp"

namespace tcuda::kernel_uses::ptx {

constexpr unsigned pointer_bytes = 8;
constexpr std::uint32_t no_region = ~std::uint32_t(0);

struct Region {
    enum class Kind : std::uint8_t {
        entry_argument, // of the parameter block, from `offset`
        argument,       // or result of a function, or a variable of a call
        local,
        shared,
        heap,   // of malloc in a kernel
        module, // a variable of the module: others may write there too
    };
    Kind kind;
    std::int64_t offset = 0, size = 0;
    std::map<std::pair<std::int64_t, unsigned>, Held> cells;  // by offset and bytes
    Held anywhere;                                           // stored at unknown offsets
};

class Regions {
public:
    explicit Regions(Values &values) : values_(values) {}

    std::uint32_t add(Region::Kind kind, std::int64_t offset = 0, std::int64_t size = 0);
    const Region &operator[](std::uint32_t number) const { return regions_[number]; }
    std::size_t size() const { return regions_.size(); }

    // `is_exact` tells whether the offset is known. The functions return whether something changed.
    bool store(std::uint32_t number, bool is_exact, std::int64_t offset, unsigned bytes, Value value);
    bool copy(std::uint32_t from, std::uint32_t to);

    Value load(std::uint32_t number, bool is_exact, std::int64_t offset, unsigned bytes);
    // All values that are stored in a region.
    Value content(std::uint32_t number);

private:
    static constexpr std::size_t most_cells = 1024;

    Value load_argument(const Region &region, bool is_exact, std::int64_t offset, unsigned bytes);

    Values &values_;
    std::vector<Region> regions_;
};

} // namespace tcuda::kernel_uses::ptx
