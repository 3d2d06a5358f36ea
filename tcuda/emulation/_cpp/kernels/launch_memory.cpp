#include "emulation/_cpp/kernels/launch_memory.hpp"

#include <algorithm>
#include <iterator>

namespace tcuda {

void LaunchMemory::admit_own(abi::Range range) {
    if (range.begin < range.end)
        own_.push_back(range);
    admit(range);
}

// Overlapping ranges become one range, so that find() needs to look at one range only.
void LaunchMemory::admit(abi::Range range) {
    if (range.begin >= range.end)
        return;
    const auto ends_before = [](const abi::Range &left, std::uintptr_t place) { return left.end <= place; };
    const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), range.begin, ends_before);
    auto last = first;
    for (; last != ranges_.end() && last->begin < range.end; ++last) {
        range.begin = std::min(range.begin, last->begin);
        range.end = std::max(range.end, last->end);
    }
    if (first == last) {
        ranges_.insert(first, range);
    } else {
        *first = range;
        ranges_.erase(first + 1, last);
    }
}

const abi::Range *LaunchMemory::find(std::uintptr_t address, std::uint64_t size) const {
    const auto after = [](std::uintptr_t left, const abi::Range &right) { return left < right.begin; };
    auto place = std::upper_bound(ranges_.begin(), ranges_.end(), address, after);
    if (place == ranges_.begin())
        return nullptr;
    --place;
    return address < place->end && size <= place->end - address ? &*place : nullptr;
}

bool LaunchMemory::is_own(std::uintptr_t address) const {
    return std::any_of(own_.begin(), own_.end(),
                       [&](const abi::Range &range) { return address - range.begin < range.end - range.begin; });
}

const abi::Range *LaunchMemory::variable_at(std::uintptr_t address, std::uint64_t size) const {
    for (const abi::Range &variable : variables_)
        if (address < variable.end && variable.begin < address + size)
            return &variable;
    return nullptr;
}

abi::Range LaunchMemory::between_variables(std::uintptr_t address, abi::Range around) const {
    for (const abi::Range &variable : variables_) {
        if (variable.end <= address)
            around.begin = std::max(around.begin, variable.end);
        else
            around.end = std::min(around.end, variable.begin);
    }
    return around;
}

std::vector<abi::Range> LaunchMemory::of_devices() const {
    std::vector<abi::Range> found = variables_;
    std::copy_if(ranges_.begin(), ranges_.end(), std::back_inserter(found),
                 [this](const abi::Range &range) { return !is_own(range.begin); });
    std::sort(found.begin(), found.end(),
              [](const abi::Range &left, const abi::Range &right) { return left.begin < right.begin; });
    return found;
}

} // namespace tcuda
