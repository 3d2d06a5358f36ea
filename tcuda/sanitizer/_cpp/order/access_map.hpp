// The accesses that later operations may race with, by address.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

#include "sanitizer/_cpp/order/access.hpp"
#include "sanitizer/_cpp/order/address_hash.hpp"
#include "sanitizer/_cpp/order/allocations.hpp"
#include "sanitizer/_cpp/order/clock.hpp"
#include "sanitizer/_cpp/order/recycler.hpp"

namespace tcuda::races {

// An access is superseded by a later access if it comes before that access, if the later access covers its region, and
// if everything that races with it races with the later access too. A possible access supersedes possible accesses
// only, because a race with an exact access must not be told as a possible race. If the earlier possible access may
// turn out to be exact, the earlier access stays too, and so do at most `most_less_sure` in one place. A superseded
// access is forgotten. An access that the host knows to be complete is forgotten too: all later operations come after
// it. No other access is forgotten, unless there are more than `most_entries`: the oldest accesses are then forgotten,
// and races with them are missed.
//
// A contiguous access is kept in pieces: a later access supersedes the bytes that it covers. A strided access is kept
// as a whole, in the cluster of all strided accesses whose ranges of addresses overlap.
class AccessMap {
public:
    static constexpr std::size_t most_entries = std::size_t(1) << 18;
    static constexpr std::size_t most_less_sure = 8;

    explicit AccessMap(Allocations &allocations) : allocations_(allocations) {}
    AccessMap(const AccessMap &) = delete;
    AccessMap &operator=(const AccessMap &) = delete;

    // An access for add() or look(), with the allocation that its region is in. Takes the region over: `use` gets
    // another one, whose memory can be used again.
    Access *make(const Operation &operation, Use &use);

    // Adds `access` to the map, and calls `race(earlier access)` for each access that races with it. The caller no
    // longer owns `access` after the call.
    template <typename Report> void add(Access *access, const Horizon &horizon, Report race) {
        check(access, horizon, race, true);
        drop(access);
        if (entries_ > next_sweep_)
            sweep(horizon);
    }

    // As add(), but the map stays without `access`, because everything later comes after it.
    template <typename Report> void look(Access *access, const Horizon &horizon, Report race) {
        check(access, horizon, race, false);
        drop(access);
    }

    // Forgets the accesses of memory that is gone.
    void forget(Address begin, Address end);

    std::size_t intervals() const { return pieces_.size() + clusters_.size(); }
    std::size_t accesses() const { return recycler_.used(); }

private:
    struct Entry {
        Access *access;
        Slot slot;
        AccessKind kind;
        Epoch epoch;
        bool operator==(const Entry &other) const { return access == other.access; }
    };
    struct Piece {
        Address end = 0;
        std::vector<Entry> entries;
    };
    using Pieces = std::map<Address, Piece>; // no two overlap

    static Entry entry_of(Access *access) {
        return {access, access->operation.slot, access->use.kind, access->operation.epoch};
    }
    static bool excludes(AccessKind left, AccessKind right) { return writes(left) || writes(right); }
    // Whether everything that races with an access of kind `before` races with an access of kind `after`.
    static bool as_strong(AccessKind after, AccessKind before) { return writes(after) || !writes(before); }
    // Whether each race with an access `before` is at least as certain with the access `after`.
    static bool as_sure(const Access &after, const Entry &before) {
        const Use &earlier = before.access->use;
        return !after.use.possible || (earlier.possible && (earlier.sure == nullptr || earlier.sure == after.use.sure));
    }
    // Whether `after` supersedes the access `before`, except that a race with `before` may turn out to be exact.
    static bool is_less_sure(const Access &after, const Entry &before) {
        return before.access->use.possible && !as_sure(after, before);
    }

    template <typename Report> void check(Access *access, const Horizon &horizon, Report race, bool keep) {
        const Region &region = access->use.region;
        if (region.empty())
            return;
        if (region.contiguous())
            check_pieces_of_range(access, horizon, race, keep);
        else
            check_pieces_around(access, horizon, race);
        if (!clusters_.empty())
            check_clusters(access, horizon, race);
        if (keep && !region.contiguous())
            add_to_cluster(access);
    }

    // Removes the entries that are superseded or known to the host. `covered`: whether the region of `access` covers an
    // entry.
    template <typename Report, typename Covered>
    void check_entries(std::vector<Entry> &entries, Access *access, const Horizon &horizon, Report race,
                       Covered covered) {
        std::size_t kept = 0, less_sure = 0;
        if (entries.size() > most_less_sure)
            for (const Entry &entry : entries)
                less_sure += is_less_sure(*access, entry);
        for (const Entry &entry : entries) {
            if (horizon.is_before(entry.slot, entry.epoch)) {
                const bool is_old = less_sure > most_less_sure && is_less_sure(*access, entry) && less_sure-- != 0;
                if (horizon.host_knows(entry.slot, entry.epoch) ||
                    (as_strong(access->use.kind, entry.kind) && (is_old || as_sure(*access, entry)) &&
                     covered(entry))) {
                    remove(entry);
                    continue;
                }
            } else if (excludes(entry.kind, access->use.kind)) {
                race(entry.access);
            }
            entries[kept++] = entry;
        }
        entries.resize(kept);
    }

    template <typename Report>
    void check_pieces_of_range(Access *access, const Horizon &horizon, Report race, bool keep) {
        const Address begin = access->use.region.begin(), end = access->use.region.end();
        const auto whole = [](const Entry &) { return true; };
        Cached &cached = cached_at(begin);
        if (keep && cached.begin == begin && cached.piece->second.end == end) {
            check_entries(cached.piece->second.entries, access, horizon, race, whole);
            append(cached.piece->second, access);
            return;
        }
        auto piece = first_piece(begin, end);
        Address place = begin;
        while (place < end) {
            if (piece == pieces_.end() || piece->first > place) { // a gap
                const Address gap_end = piece == pieces_.end() ? end : std::min(end, piece->first);
                if (keep) {
                    piece = pieces_.emplace_hint(piece, place, Piece{gap_end, {}});
                    append(piece->second, access);
                    ++piece;
                }
                place = gap_end;
                continue;
            }
            check_entries(piece->second.entries, access, horizon, race, whole);
            if (keep)
                append(piece->second, access);
            place = piece->second.end;
            ++piece;
        }
        merge(begin, end);
        if (piece = pieces_.find(begin); keep && piece->second.end == end)
            cached = {begin, piece};
    }

    template <typename Report> void check_pieces_around(Access *access, const Horizon &horizon, Report race) {
        const Region &region = access->use.region;
        auto piece = pieces_.upper_bound(region.begin());
        if (piece != pieces_.begin())
            --piece;
        for (; piece != pieces_.end() && piece->first < region.end(); ++piece) {
            const auto raced = [&](Access *earlier) {
                if (overlap_of(region, piece->first, piece->second.end))
                    race(earlier);
            };
            check_entries(piece->second.entries, access, horizon, raced, [](const Entry &) { return false; });
        }
    }

    template <typename Report> void check_clusters(Access *access, const Horizon &horizon, Report race) {
        const Region &region = access->use.region;
        auto cluster = clusters_.upper_bound(region.begin());
        if (cluster != clusters_.begin() && std::prev(cluster)->second.end > region.begin())
            --cluster;
        while (cluster != clusters_.end() && cluster->first < region.end()) {
            const auto raced = [&](Access *earlier) {
                if (overlap_of(region, earlier->use.region))
                    race(earlier);
            };
            check_entries(cluster->second.entries, access, horizon, raced,
                          [&](const Entry &entry) { return covers(region, entry.access->use.region); });
            cluster = cluster->second.entries.empty() ? clusters_.erase(cluster) : std::next(cluster);
        }
    }

    static constexpr unsigned cache_bits = 12;

    // The piece that begins at an address, if that piece was looked at lately.
    struct Cached {
        Address begin = ~Address(0); // no access begins there
        Pieces::iterator piece;
    };
    Cached &cached_at(Address begin) { return cache_[place_of<cache_bits>(begin)]; }

    Pieces::iterator erase(Pieces::iterator piece);
    Pieces::iterator first_piece(Address begin, Address end);
    Pieces::iterator split(Pieces::iterator piece, Address place);
    void append(Piece &piece, Access *access);
    void merge(Address begin, Address end);
    void add_to_cluster(Access *access);
    void remove(const Entry &entry) noexcept;
    void drop(Access *access) noexcept;
    void sweep(const Horizon &horizon);
    template <typename Unwanted> void remove_entries(Unwanted unwanted);

    Allocations &allocations_;
    Recycler<Access> recycler_;
    Pieces pieces_, clusters_;
    std::array<Cached, std::size_t(1) << cache_bits> cache_;
    std::size_t entries_ = 0;
    std::size_t next_sweep_ = 4096;
};

} // namespace tcuda::races
