#include "emulated/kernels/races/code_sites.hpp"

#include <algorithm>
#include <limits>

namespace tcuda {

CodeSites::CodeSites() : numbers_(places) {
    sites_.reserve(most);
    for (unsigned kind = 0; kind < unknown; ++kind)
        sites_.push_back({0, 0, static_cast<AccessKind>(kind)});
}

unsigned CodeSites::number(std::uint32_t code, AccessKind kind, std::uint64_t size) {
    const std::uint32_t key = code * 8 + static_cast<std::uint32_t>(kind);
    for (std::uint32_t place = key * 0x9e3779b1u >> 18;; ++place) {
        std::uint16_t &number = numbers_[place % places];
        if (number == 0) {
            if (sites_.size() == most)
                return static_cast<unsigned>(kind);
            number = static_cast<std::uint16_t>(sites_.size());
            const std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
            sites_.push_back({code, static_cast<std::uint32_t>(std::min(size, largest)), kind});
            return number;
        }
        if (sites_[number].code == code && sites_[number].kind == kind)
            return number;
    }
}

} // namespace tcuda
