// The object behind the Python class RaceDetector.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda {

// The detector, and the function that gets the races. The ledger that the detector is attached to stays alive.
struct PythonRaceDetector {
    explicit PythonRaceDetector(nanobind::object on_race);
    ~PythonRaceDetector();
    PythonRaceDetector(const PythonRaceDetector &) = delete;
    PythonRaceDetector &operator=(const PythonRaceDetector &) = delete;

    // Calls `on_race` for each of the races, until a call raises. Throws the exception of that call.
    void tell(const races::RaceDetector::Races &found);

    // Throws std::runtime_error if the detector, or another one, is attached already.
    void attach(nanobind::object ledger);
    void detach();

    races::RaceDetector detector;
    nanobind::object on_race;
    nanobind::object ledger; // invalid unless the detector is attached
};

// An executable graph of a detector. `owner` keeps the detector alive.
struct PythonRaceGraph {
    PythonRaceGraph(nanobind::object owner, races::RaceDetector &detector, std::unique_ptr<races::GraphPlan> plan)
        : owner(std::move(owner)), detector(detector), plan(std::move(plan)) {}
    ~PythonRaceGraph() { detector.remove_graph(*plan); }
    PythonRaceGraph(const PythonRaceGraph &) = delete;
    PythonRaceGraph &operator=(const PythonRaceGraph &) = delete;

    nanobind::object owner;
    races::RaceDetector &detector;
    std::unique_ptr<races::GraphPlan> plan;
};

} // namespace tcuda
