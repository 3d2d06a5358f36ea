#include "races/order/sure_bytes.hpp"

#include <utility>

namespace tcuda::races {
namespace {

using Range = ByteRanges::Range;

struct Found {
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

void meet(const ByteRanges &left, const ByteRanges &right, const Overlap &within, Found *found) {
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

void meet(const ByteRanges &left, const Region &region, const Overlap &within, Found *found) {
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
    // Whether anything is known of the bytes.
    bool can_tell() const { return !use.possible || use.sure != nullptr; }
    std::size_t work() const { return use.possible ? use.sure->work() : 0; }
    bool look() const { return use.possible && use.sure->look(); }
    bool is_whole() const { return !use.possible || use.sure->are_all(); }
};

// The bytes that `writer` writes and `other` uses.
void meet_writes(const Side &writer, const Side &other, const Overlap &within, Found *found) {
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
    const Side one{left}, other{right};
    if (!one.can_tell() || !other.can_tell())
        return common;
    const std::size_t work_before = one.work() + other.work();
    const auto work = [&] { return one.work() + other.work() - work_before; };
    for (bool goes_on = true; goes_on;) {
        // No short cut: both sides look.
        const bool one_looked = one.look(), other_looked = other.look();
        goes_on = one_looked || other_looked;
        Found found;
        meet_writes(one, other, overlap, &found);
        meet_writes(other, one, overlap, &found);
        if (found.any)
            return {CommonBytes::Certainty::exact, found.begin, found.end, work()};
    }
    common.work = work();
    if (one.is_whole() && other.is_whole())
        common.certainty = CommonBytes::Certainty::none;
    return common;
}

} // namespace tcuda::races
