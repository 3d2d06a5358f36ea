// A hash table from addresses to pointers, for lookups on the path of every allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/allocator/address_hash.hpp"

namespace tcuda {

// Open addressing with linear probing. An erased entry leaves no mark, so lookups never slow down with age. The key 0
// stands for an empty place. Growing may throw std::bad_alloc, and then changes nothing.
template <typename T> class AddressMap {
public:
    T *find(std::uintptr_t key) const {
        for (std::size_t place = home(key);; place = next(place)) {
            if (entries_[place].key == key)
                return entries_[place].value;
            if (entries_[place].key == 0)
                return nullptr;
        }
    }

    // Makes room, so that the next insert() cannot throw.
    void reserve_one() {
        if (2 * (size_ + 1) > entries_.size())
            grow();
    }

    void insert(std::uintptr_t key, T *value) {
        reserve_one();
        std::size_t place = home(key);
        while (entries_[place].key != 0 && entries_[place].key != key)
            place = next(place);
        size_ += entries_[place].key == 0;
        entries_[place] = {key, value};
    }

    T *erase(std::uintptr_t key) {
        std::size_t place = home(key);
        while (entries_[place].key != key) {
            if (entries_[place].key == 0)
                return nullptr;
            place = next(place);
        }
        T *value = entries_[place].value;
        // Moves entries back that were pushed over this place, so that no lookup for them stops here.
        for (std::size_t other = next(place); entries_[other].key != 0; other = next(other)) {
            const std::size_t wanted = home(entries_[other].key);
            const bool reachable =
                place <= other ? wanted <= place || wanted > other : wanted <= place && wanted > other;
            if (reachable) {
                entries_[place] = entries_[other];
                place = other;
            }
        }
        entries_[place] = {};
        --size_;
        return value;
    }

    std::size_t size() const { return size_; }

    template <typename Visit> void each(Visit visit) const {
        for (const Entry &entry : entries_)
            if (entry.key != 0)
                visit(entry.value);
    }

private:
    struct Entry {
        std::uintptr_t key = 0;
        T *value = nullptr;
    };

    std::size_t home(std::uintptr_t key) const { return hash_of(key) >> shift_; }
    std::size_t next(std::size_t place) const { return (place + 1) & (entries_.size() - 1); }

    __attribute__((noinline)) void grow() {
        std::vector<Entry> old(2 * entries_.size());
        old.swap(entries_);
        --shift_;
        size_ = 0;
        for (const Entry &entry : old)
            if (entry.key != 0)
                insert(entry.key, entry.value);
    }

    std::vector<Entry> entries_ = std::vector<Entry>(16);
    unsigned shift_ = 60; // 64 - log2(entries_.size())
    std::size_t size_ = 0;
};

} // namespace tcuda
