// The places of the code that access memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "emulation/_cpp/kernels/races/access_kind.hpp"
#include "emulation/_cpp/kernels/races/reserved_memory.hpp"
#include <tcuda_races.h>

namespace tcuda {

// Has room for a fixed number of places, so that code on a fiber can add one. Places beyond that number share one place
// for each kind of access, whose code is 0.
class CodeSites {
public:
    struct Site {
        std::uint32_t code; // behind the call of the hook, from the beginning of the library
        std::uint32_t size;
        AccessKind kind;
        // The first thread that writes here, plainly, what it has used by an atomic function before; and whether
        // another thread of its block, or of another block, does so too.
        std::uint32_t block = 0, thread_after_atomic = 0; // the thread plus one
        bool several_after_atomic = false, blocks_after_atomic = false;
    };

    // Lets `notes` refer to the numbers and the facts of the places, for the module.
    CodeSites(abi::RaceNotes &notes, abi::Range library)
        : entries_(places), facts_(most), by_code_((library.end - library.begin) * sizeof(unsigned short)) {
        notes.code = library.begin;
        notes.sites = numbers();
        notes.facts = facts_.data();
        sites_.reserve(most);
        for (unsigned kind = 0; kind < unknown; ++kind)
            sites_.push_back(Site{0, 0, static_cast<AccessKind>(kind)});
    }

    // The number of the place.
    unsigned number(std::uint32_t code, AccessKind kind, std::uint64_t size) {
        const std::uint64_t key = std::uint64_t(code) << 8 | static_cast<std::uint64_t>(kind) << 4 | 1;
        for (std::uint64_t place = key * 0x9e3779b97f4a7c15ull >> 49;; ++place) {
            std::uint64_t &entry = entries_[place % places];
            if (entry >> 16 == key)
                return entry & 0xffff;
            if (entry == 0)
                return add(entry, key, Site{code, shown(size), kind});
        }
    }
    // The same for the only kind of access at the place, which modules get to know.
    unsigned only_number(std::uint32_t code, AccessKind kind, std::uint64_t size) {
        const unsigned found = number(code, kind, size);
        numbers()[code] = found < unknown ? 0 : static_cast<unsigned short>(found);
        if (kind == AccessKind::atomic_of_device)
            facts_[found] |= abi::RaceNotes::atomic_of_device;
        return found;
    }
    // Whether a thread writes at the place to memory that the thread has read before.
    bool updates(unsigned number) const { return (facts_[number] & abi::RaceNotes::updates) != 0; }
    void set_updates(unsigned number) { facts_[number] |= abi::RaceNotes::updates; }
    Site &operator[](unsigned number) { return sites_[number]; }
    const Site &operator[](unsigned number) const { return sites_[number]; }

private:
    static constexpr unsigned most = 1u << stamps::site_bits;
    static constexpr unsigned places = 4 * most; // of the table
    static constexpr unsigned unknown = 8; // one for each kind

    unsigned short *numbers() const { return static_cast<unsigned short *>(by_code_.begin()); }
    static std::uint32_t shown(std::uint64_t size) {
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(size, std::numeric_limits<std::uint32_t>::max()));
    }
    unsigned add(std::uint64_t &entry, std::uint64_t key, Site site) {
        if (sites_.size() == most)
            return static_cast<unsigned>(site.kind);
        entry = key << 16 | sites_.size();
        sites_.push_back(site);
        return static_cast<unsigned>(sites_.size() - 1);
    }

    std::vector<Site> sites_;
    std::vector<std::uint64_t> entries_; // the key and the number, by the hash of the key; 0 if empty
    std::vector<unsigned char> facts_; // by number
    ReservedMemory by_code_;
};

} // namespace tcuda
