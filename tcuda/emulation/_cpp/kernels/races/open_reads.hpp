// Reads that may be guesses at what a compare-and-swap will find.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"
#include "emulation/_cpp/kernels/races/race_log.hpp"

namespace tcuda {

// Bytes of two accesses of different threads that nothing orders.
struct Conflict {
    AccessStamp first;
    std::uintptr_t begin, end;

    bool overlaps(std::uintptr_t address, std::uint64_t size) const { return begin < address + size && address < end; }
    bool is_in(std::uintptr_t address, std::uint64_t size) const { return address <= begin && end <= address + size; }
};

// A conflict of a plain read with an atomic access. The conflict is no race if the next access of the reader to these
// bytes is a compare-and-swap.
struct OpenRead {
    Conflict conflict;
    AccessStamp second;
    unsigned reader;
    Missing missing;
    std::uint64_t count;

    bool is_like(const OpenRead &other) const {
        return reader == other.reader && conflict.begin == other.conflict.begin && conflict.end == other.conflict.end &&
               stamps::site(conflict.first) == stamps::site(other.conflict.first) &&
               stamps::site(second) == stamps::site(other.second);
    }
};

// Takes no memory after the construction.
class OpenReads {
public:
    OpenReads() { reads_.reserve(most); }

    bool empty() const { return reads_.empty(); }
    // The read that is like the other one; null if there is none.
    OpenRead *find(const OpenRead &other) {
        const auto found =
            std::find_if(reads_.begin(), reads_.end(), [&](const OpenRead &open) { return open.is_like(other); });
        return found == reads_.end() ? nullptr : &*found;
    }
    // If there is no room, the read is not reported.
    void add(const OpenRead &open) {
        if (reads_.size() < most)
            reads_.push_back(open);
    }
    // Takes out the reads for which `takes` is true, and calls `use` with each.
    template <typename Takes, typename Use> void take(Takes takes, Use use) {
        const auto taken = std::remove_if(reads_.begin(), reads_.end(), [&](const OpenRead &open) {
            if (!takes(open))
                return false;
            use(open);
            return true;
        });
        reads_.erase(taken, reads_.end());
    }
    template <typename Takes> void drop(Takes takes) {
        take(takes, [](const OpenRead &) {});
    }

private:
    static constexpr std::size_t most = 64;

    std::vector<OpenRead> reads_;
};

} // namespace tcuda
