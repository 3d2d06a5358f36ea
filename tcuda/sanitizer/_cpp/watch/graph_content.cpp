#include "sanitizer/_cpp/watch/graph_content.hpp"

namespace tcuda::watch {

KeptUses::KeptUses(const races::RaceDetector::NamedUses &named) {
    uses.reserve(named.count);
    for (const races::RaceDetector::NamedUse &use : named)
        uses.push_back({use.use, std::string(use.label)});
}

std::vector<races::RaceDetector::NamedUse> KeptUses::named() const {
    std::vector<races::RaceDetector::NamedUse> made;
    made.reserve(uses.size());
    for (const Labelled &use : uses)
        made.push_back({use.use, use.label});
    return made;
}

} // namespace tcuda::watch
