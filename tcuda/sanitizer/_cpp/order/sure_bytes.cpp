#include "sanitizer/_cpp/order/sure_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tcuda::races {
namespace {

using Range = ByteRanges::Range;

constexpr std::size_t little_work = std::size_t(1) << 16; // after which one common byte is enough

struct CommonByteRange {
    bool any = false;
    Address begin = 0, end = 0;

    void add(Address from, Address to) {
        begin = any ? std::min(begin, from) : from;
        end = any ? std::max(end, to) : to;
        any = true;
    }
};

// The first range that ends behind the address.
std::vector<Range>::const_iterator first_behind(const std::vector<Range> &ranges, Address address) {
    return std::partition_point(ranges.begin(), ranges.end(),
                                [address](const Range &range) { return range.end <= address; });
}

void meet(const ByteRanges &left, const ByteRanges &right, const Overlap &within, CommonByteRange *found) {
    auto one = first_behind(left.all(), within.begin), other = first_behind(right.all(), within.begin);
    while (one != left.all().end() && other != right.all().end()) {
        const Address from = std::max({one->begin, other->begin, within.begin});
        const Address to = std::min({one->end, other->end, within.end});
        if (from >= within.end)
            return;
        if (from < to)
            found->add(from, to);
        ++(one->end < other->end ? one : other);
    }
}

void meet(const ByteRanges &left, const Region &region, const Overlap &within, CommonByteRange *found) {
    for (auto range = first_behind(left.all(), within.begin); range != left.all().end(); ++range) {
        if (range->begin >= within.end)
            return;
        const auto common = overlap_of(region, std::max(range->begin, within.begin), std::min(range->end, within.end));
        if (common && common->exact)
            found->add(common->begin, common->end);
    }
}

// One side of a pair of uses.
struct Side {
    const Use &use;

    bool reads() const { return use.kind != AccessKind::write; }
    bool writes() const { return races::writes(use.kind); }
    std::size_t work() const { return use.possible ? use.sure->work() : 0; }
    bool look() const { return use.possible && use.sure->look(); }
    void look_at(Address address) const {
        if (use.possible && !is_whole())
            use.sure->look_at(address);
    }
    // Looks where the other side uses bytes for certain: at the ends and in the middle.
    void look_at_bytes_of(const Side &other, const Overlap &within) const {
        if (!other.use.possible) {
            for (const Address address : {within.begin, within.begin + (within.end - within.begin) / 2, within.end - 1})
                look_at(address);
            return;
        }
        for (const ByteRanges *const bytes : {&other.use.sure->writes(), &other.use.sure->reads()}) {
            const auto first = first_behind(bytes->all(), within.begin), last = first_behind(bytes->all(), within.end);
            const auto count = last - first;
            if (count == 0)
                continue;
            for (const auto place : {std::ptrdiff_t(0), count / 2, count - 1}) {
                const Range &range = first[place];
                look_at(std::max(range.begin, within.begin));
                look_at(std::min(range.end, within.end) - 1);
            }
        }
    }
    bool is_whole() const { return !use.possible || use.sure->are_all(); }
};

// The bytes that `writer` writes and `other` uses.
void meet_writes(const Side &writer, const Side &other, const Overlap &within, CommonByteRange *found) {
    if (!writer.writes())
        return;
    if (!writer.use.possible) {
        if (other.writes())
            meet(other.use.sure->writes(), writer.use.region, within, found);
        if (other.reads())
            meet(other.use.sure->reads(), writer.use.region, within, found);
        return;
    }
    const ByteRanges &writes = writer.use.sure->writes();
    if (!other.use.possible)
        return meet(writes, other.use.region, within, found);
    if (other.writes())
        meet(writes, other.use.sure->writes(), within, found);
    if (other.reads())
        meet(writes, other.use.sure->reads(), within, found);
}

} // namespace

CommonBytes common_bytes(const Use &left, const Use &right, const Overlap &overlap) {
    CommonBytes common;
    if (!can_tell(left) || !can_tell(right))
        return common;
    const Side one{left}, other{right};
    const std::size_t work_before = one.work() + other.work();
    const auto work = [&] { return one.work() + other.work() - work_before; };
    CommonByteRange found;
    for (bool goes_on = true; goes_on;) {
        one.look_at_bytes_of(other, overlap);
        other.look_at_bytes_of(one, overlap);
        found = CommonByteRange();
        meet_writes(one, other, overlap, &found);
        meet_writes(other, one, overlap, &found);
        if (found.any && work() >= little_work)
            break;
        // Both sides look, even if the first side has found bytes.
        const bool one_looked = one.look(), other_looked = other.look();
        goes_on = one_looked || other_looked;
    }
    if (found.any)
        return {CommonBytes::Certainty::exact, found.begin, found.end, work()};
    common.work = work();
    if (one.is_whole() && other.is_whole())
        common.certainty = CommonBytes::Certainty::none;
    return common;
}

} // namespace tcuda::races
