// A found race, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sanitizer/_cpp/order/race.hpp"

namespace tcuda {

struct PythonRace {
    std::shared_ptr<const races::Race> race;
};

// A part of a race. `race` keeps the part alive.
struct PythonRaceAccess {
    std::shared_ptr<const races::Race> race;
    const races::RaceAccess &access;
};
struct PythonRaceAllocation {
    std::shared_ptr<const races::Race> race;
    const races::RaceAllocation &allocation;
};

// Adds the classes of races to the module.
void bind_race(nanobind::module_ &module);

// A dictionary for each step.
nanobind::list list_of(const std::vector<races::RecentStep> &steps);

} // namespace tcuda
