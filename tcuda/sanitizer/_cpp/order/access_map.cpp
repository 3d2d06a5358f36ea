#include "sanitizer/_cpp/order/access_map.hpp"

#include <algorithm>
#include <iterator>

namespace tcuda::races {

Access *AccessMap::make(const Operation &operation, Use &use) {
    Access *const access = recycler_.take();
    access->operation = operation;
    std::swap(access->use, use);
    access->allocation = allocations_.use(access->use.region.begin());
    return access;
}

// Splits the pieces at both ends of a range, and returns the first piece that ends in the range or behind it.
AccessMap::Pieces::iterator AccessMap::first_piece(Address begin, Address end) {
    auto piece = pieces_.lower_bound(begin);
    if (piece != pieces_.begin() && std::prev(piece)->second.end > begin)
        piece = split(std::prev(piece), begin);
    const auto last = pieces_.lower_bound(end);
    if (last != pieces_.begin() && std::prev(last)->second.end > end)
        split(std::prev(last), end);
    return piece;
}

// Returns the piece that begins at `place`.
AccessMap::Pieces::iterator AccessMap::split(Pieces::iterator piece, Address place) {
    Piece rest{piece->second.end, piece->second.entries};
    for (const Entry &entry : rest.entries)
        ++entry.access->users;
    entries_ += rest.entries.size();
    piece->second.end = place;
    return pieces_.emplace_hint(std::next(piece), place, std::move(rest));
}

void AccessMap::append(Piece &piece, Access *access) {
    piece.entries.push_back(entry_of(access));
    ++access->users;
    ++entries_;
}

AccessMap::Pieces::iterator AccessMap::erase(Pieces::iterator piece) {
    if (Cached &cached = cached_at(piece->first); cached.begin == piece->first)
        cached = {};
    return pieces_.erase(piece);
}

// Joins the neighbours with the same accesses in a range.
void AccessMap::merge(Address begin, Address end) {
    auto piece = pieces_.lower_bound(begin);
    while (piece != pieces_.end() && piece->first < end) {
        if (piece->second.entries.empty()) {
            piece = erase(piece);
            continue;
        }
        const auto next = std::next(piece);
        if (next == pieces_.end() || next->first >= end)
            break;
        if (next->first != piece->second.end || !(next->second.entries == piece->second.entries)) {
            piece = next;
            continue;
        }
        piece->second.end = next->second.end;
        for (const Entry &entry : next->second.entries)
            remove(entry);
        erase(next);
    }
}

void AccessMap::add_to_cluster(Access *access) {
    Address begin = access->use.region.begin(), end = access->use.region.end();
    auto first = clusters_.upper_bound(begin);
    if (first != clusters_.begin() && std::prev(first)->second.end > begin)
        --first;
    if (first == clusters_.end() || first->first >= end) {
        first = clusters_.emplace_hint(first, begin, Piece{end, {}});
    } else if (first->first > begin || first->second.end < end) {
        std::vector<Entry> all;
        auto last = first;
        for (; last != clusters_.end() && last->first < end; ++last) {
            all.insert(all.end(), last->second.entries.begin(), last->second.entries.end());
            begin = std::min(begin, last->first);
            end = std::max(end, last->second.end);
        }
        clusters_.erase(first, last);
        first = clusters_.emplace(begin, Piece{end, std::move(all)}).first;
    }
    append(first->second, access);
}

void AccessMap::remove(const Entry &entry) noexcept {
    --entries_;
    drop(entry.access);
}

void AccessMap::drop(Access *access) noexcept {
    Allocation *const allocation = access->allocation;
    if (!recycler_.drop(access))
        return;
    access->use.sure.reset();
    allocations_.drop(allocation);
}

template <typename Unwanted> void AccessMap::remove_entries(Unwanted unwanted) {
    cache_.fill({});
    for (Pieces *const all : {&pieces_, &clusters_})
        for (auto piece = all->begin(); piece != all->end();) {
            auto &entries = piece->second.entries;
            const auto kept = std::stable_partition(entries.begin(), entries.end(),
                                                    [&](const Entry &entry) { return !unwanted(entry); });
            for (auto entry = kept; entry != entries.end(); ++entry)
                remove(*entry);
            entries.erase(kept, entries.end());
            piece = entries.empty() ? all->erase(piece) : std::next(piece);
        }
}

void AccessMap::sweep(const Horizon &horizon) {
    remove_entries([&](const Entry &entry) { return horizon.host_knows(entry.slot, entry.epoch); });
    if (entries_ > most_entries / 2) {
        std::vector<std::uint64_t> numbers;
        for (const Pieces *const all : {&pieces_, &clusters_})
            for (const auto &[begin, piece] : *all)
                for (const Entry &entry : piece.entries)
                    numbers.push_back(entry.access->operation.number);
        const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
        std::nth_element(numbers.begin(), middle, numbers.end());
        remove_entries([&](const Entry &entry) { return entry.access->operation.number < *middle; });
    }
    next_sweep_ = std::max<std::size_t>(4096, 2 * entries_);
}

void AccessMap::forget(Address begin, Address end) {
    auto piece = first_piece(begin, end);
    while (piece != pieces_.end() && piece->first < end) {
        for (const Entry &entry : piece->second.entries)
            remove(entry);
        piece = erase(piece);
    }
    for (auto cluster = clusters_.begin(); cluster != clusters_.end() && cluster->first < end;) {
        if (cluster->second.end <= begin) {
            ++cluster;
            continue;
        }
        auto &entries = cluster->second.entries;
        const auto kept = std::remove_if(entries.begin(), entries.end(), [&](const Entry &entry) {
            const Region &region = entry.access->use.region;
            const bool gone = region.begin() < end && begin < region.end();
            if (gone)
                remove(entry);
            return gone;
        });
        entries.erase(kept, entries.end());
        cluster = entries.empty() ? clusters_.erase(cluster) : std::next(cluster);
    }
}

} // namespace tcuda::races
