// The places of the code that access memory.
#pragma once

#include <cstdint>
#include <vector>

#include "emulated/kernels/races/access_stamp.hpp"

namespace tcuda {

// Has room for a fixed number of places, so that code on a fiber can add one. Places beyond that number share one place
// for each kind of access, whose code is 0.
class CodeSites {
public:
    struct Site {
        std::uint32_t code; // behind the call of the hook, from the beginning of the library
        std::uint32_t size;
        AccessKind kind;
    };

    CodeSites();

    // The number of the place.
    unsigned number(std::uint32_t code, AccessKind kind, std::uint64_t size);
    const Site &operator[](unsigned number) const { return sites_[number]; }

private:
    static constexpr unsigned most = 1u << stamps::site_bits;
    static constexpr unsigned places = 2 * most; // of the table
    static constexpr unsigned unknown = 8;       // one for each kind

    std::vector<Site> sites_;
    std::vector<std::uint16_t> numbers_; // by the hash of the place; 0 if empty
};

} // namespace tcuda
