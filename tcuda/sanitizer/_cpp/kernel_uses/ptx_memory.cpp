#include "sanitizer/_cpp/kernel_uses/ptx_memory.hpp"

#include <algorithm>

namespace tcuda::kernel_uses::ptx {
namespace {

std::int64_t moved(std::int64_t place, std::int64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(place) + static_cast<std::uint64_t>(by));
}

} // namespace

KernelMemory::KernelMemory(Values &values, Regions &regions, std::size_t &steps)
    : values_(values), regions_(regions), steps_(steps), unknown_shared_(regions.add(Region::Kind::shared)),
      unknown_local_(regions.add(Region::Kind::local)) {}

std::uint32_t KernelMemory::region_at(const Sum &sum) const {
    std::uint32_t region = no_region;
    for (const Term &term : sum.terms) {
        const Origin &origin = values_.origin(term.origin);
        if (origin.kind != Origin::Kind::region || term.is_derived || term.is_negative)
            continue;
        if (region != no_region)
            return no_region;
        region = static_cast<std::uint32_t>(origin.offset);
    }
    return region;
}

bool KernelMemory::is_in(Region::Kind kind, Space space) {
    switch (space) {
    case Space::generic:
        return true;
    case Space::global:
        return kind == Region::Kind::heap || kind == Region::Kind::module;
    case Space::constant:
        return kind == Region::Kind::module;
    case Space::shared:
        return kind == Region::Kind::shared;
    case Space::local:
        return kind == Region::Kind::local || kind == Region::Kind::argument; // arguments lie on the stack
    case Space::parameter:
        return kind == Region::Kind::argument || kind == Region::Kind::entry_argument;
    }
    return true;
}

Value KernelMemory::load(Value address, Space space, std::int64_t offset, unsigned bytes) {
    if (address == Values::none)
        return Values::none;
    Value value = Values::none;
    const bool is_followed = space == Space::shared || space == Space::local || space == Space::parameter;
    for (const Sum &sum : values_.sums(address)) {
        const std::uint32_t region = region_at(sum);
        const std::int64_t place = moved(sum.number, offset);
        if (region != no_region && is_in(regions_[region].kind, space)) {
            if (sum.is_exact)
                for (const Stored &stored : stored_)
                    if (stored.region == region && stored.offset == place && stored.bytes == bytes &&
                        values_.sums(address).size() == 1)
                        return stored.value;
            value = values_.either(value, regions_.load(region, sum.is_exact, place, bytes));
            const bool is_shared = regions_[region].kind == Region::Kind::shared;
            if (const Value unknown = regions_[is_shared ? unknown_shared_ : unknown_local_].anywhere.value();
                unknown != Values::none && (is_shared || regions_[region].kind == Region::Kind::local))
                value = values_.either(value, bytes < pointer_bytes ? values_.part(unknown) : unknown);
        } else if (is_followed) { // some address of the space
            for (std::uint32_t other = 0; other < regions_.size(); ++other) {
                if (steps_ != 0)
                    --steps_;
                if (is_in(regions_[other].kind, space))
                    value = values_.either(value, regions_.load(other, false, 0, bytes));
            }
        } else {
            value = values_.either(value, bytes < pointer_bytes ? values_.part(values_.foreign()) : values_.foreign());
        }
    }
    return value;
}

bool KernelMemory::store(Value address, Space space, std::int64_t offset, unsigned bytes, Value value,
                         bool is_certain) {
    if (address == Values::none)
        return false;
    bool changed = false;
    const auto &sums = values_.sums(address);
    for (const Sum &sum : sums) {
        const std::uint32_t region = region_at(sum);
        const std::int64_t place = moved(sum.number, offset);
        if (region != no_region && is_in(regions_[region].kind, space)) {
            const bool is_exact = sum.is_exact && bytes != 0;
            if (regions_[region].kind == Region::Kind::local) {
                const auto overlaps = [&](const Stored &stored) {
                    return stored.region == region &&
                           (!is_exact || (stored.offset < place + bytes && place < stored.offset + stored.bytes));
                };
                stored_.erase(std::remove_if(stored_.begin(), stored_.end(), overlaps), stored_.end());
                if (is_exact && is_certain && sums.size() == 1 && stored_.size() < 64)
                    stored_.push_back({region, place, bytes, value});
            }
            changed = regions_.store(region, is_exact, place, bytes, value) || changed;
        } else if (space == Space::shared || space == Space::local || region != no_region) {
            if (space != Space::shared)
                stored_.clear();
            const std::uint32_t unknown = space == Space::shared ? unknown_shared_ : unknown_local_;
            changed = regions_.store(unknown, false, 0, bytes, value) || changed;
        }
    }
    return changed;
}

} // namespace tcuda::kernel_uses::ptx
