// The searches for bytes that both accesses of a possible race use for certain.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "sanitizer/_cpp/order/race_table.hpp"
#include "sanitizer/_cpp/order/sure_bytes.hpp"

namespace tcuda::races {

// A program may come to the same lines again and again. So the work for each pair of lines is limited, and the result
// of the last search is kept for the case that the same launches race again.
class Searches {
public:
    // `possible`: the key of the race. Null if the bytes of an access are not known, or after too much work.
    std::optional<CommonBytes> find(const RaceTable::Key &possible, const Use &previous, const Use &current,
                                    const Overlap &overlap) {
        if (!can_tell(previous) || !can_tell(current))
            return std::nullopt;
        auto known = searches_.find(possible);
        if (known == searches_.end()) {
            if (searches_.size() >= RaceTable::most_races)
                return std::nullopt;
            known = searches_.emplace(possible, Search()).first;
        }
        Search &search = known->second;
        if (search.is_of(previous, current, overlap))
            return search.found;
        if (search.work >= most_work_of_pair || work_ >= most_work)
            return std::nullopt;
        search.found = common_bytes(previous, current, overlap);
        search.work += search.found.work;
        work_ += search.found.work;
        search.previous = previous.sure;
        search.current = current.sure;
        search.begin = overlap.begin;
        search.end = overlap.end;
        return search.found;
    }

    void clear() {
        searches_.clear();
        work_ = 0;
    }

private:
    // A step of work takes about 10 ns.
    static constexpr std::size_t most_work_of_pair = std::size_t(1) << 25, most_work = std::size_t(1) << 29;

    struct Search {
        std::size_t work = 0;
        // The last search. A weak pointer keeps the address, so no later launch has the pointer of this launch.
        std::weak_ptr<SureBytes> previous, current;
        Address begin = 0, end = 0;
        CommonBytes found;

        // Whether both uses are those of the last search. The exact bytes of other uses are not kept.
        bool is_of(const Use &left, const Use &right, const Overlap &overlap) const {
            return left.possible && right.possible && is_same(previous, left.sure) && is_same(current, right.sure) &&
                   begin == overlap.begin && end == overlap.end;
        }
        static bool is_same(const std::weak_ptr<SureBytes> &kept, const std::shared_ptr<SureBytes> &given) {
            return !kept.owner_before(given) && !given.owner_before(kept);
        }
    };

    std::map<RaceTable::Key, Search> searches_;
    std::size_t work_ = 0;
};

} // namespace tcuda::races
