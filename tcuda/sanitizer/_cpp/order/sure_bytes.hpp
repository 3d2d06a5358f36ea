// The bytes that an operation uses for certain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sanitizer/_cpp/order/access.hpp"

namespace tcuda::races {

// Ranges of bytes in the order of their addresses. No two ranges touch.
class ByteRanges {
public:
    struct Range {
        Address begin, end;
    };

    void add(Address begin, Address end) { ranges_.push_back({begin, end}); }
    // Puts the added ranges in order.
    void settle() {
        if (settled_ == ranges_.size())
            return;
        std::sort(ranges_.begin(), ranges_.end(),
                  [](const Range &left, const Range &right) { return left.begin < right.begin; });
        std::size_t kept = 0;
        for (const Range &range : ranges_) {
            if (kept != 0 && range.begin <= ranges_[kept - 1].end)
                ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, range.end);
            else
                ranges_[kept++] = range;
        }
        ranges_.resize(kept);
        settled_ = kept;
    }
    std::size_t size() const { return ranges_.size(); }
    const std::vector<Range> &all() const { return ranges_; }

private:
    std::vector<Range> ranges_;
    std::size_t settled_ = 0;
};

// What an operation reads and writes for certain. The search takes time, so each call of look() searches a little. The
// detector calls the functions under its mutex.
class SureBytes {
public:
    virtual ~SureBytes() = default;

    // Looks for more bytes. Work is counted in steps of about 10 ns. False if nothing is left to look at, or if the
    // search has taken too long.
    virtual bool look() = 0;
    // Looks where the operation may use a byte.
    virtual void look_at(Address address) = 0;
    // The bytes that were found so far.
    virtual const ByteRanges &reads() const = 0;
    virtual const ByteRanges &writes() const = 0;
    // How much work all calls of look() have made.
    virtual std::size_t work() const = 0;
    // Whether the operation uses no other bytes.
    virtual bool are_all() const = 0;
};

// Whether anything is known of the bytes of a use.
inline bool can_tell(const Use &use) { return !use.possible || use.sure != nullptr; }

// The result of a search for the bytes that two uses have in common.
struct CommonBytes {
    enum class Certainty { possible, exact, none };
    Certainty certainty = Certainty::possible;
    Address begin = 0, end = 0; // the first common byte that was found, and the place behind the last one, if exact
    std::size_t work = 0;
};

// Looks for a byte in `overlap` that both uses use for certain, and that at least one of them writes.
CommonBytes common_bytes(const Use &left, const Use &right, const Overlap &overlap);

} // namespace tcuda::races
