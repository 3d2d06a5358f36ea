// The object behind the Python class DriverWatch.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "bindings/python_race_detector.hpp"
#include "cupti/subscription.hpp"
#include "watch/driver_watch.hpp"

namespace tcuda {

// The races that callbacks have found. Callbacks run no Python code, so the races wait here until a thread with Python's
// lock delivers them.
class FoundRaces {
public:
    using Races = races::RaceDetector::Races;

    void add(Races &&found) {
        const std::lock_guard lock(mutex_);
        for (auto &race : found)
            waiting_.push_back(std::move(race));
    }
    Races take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(waiting_, {});
    }

private:
    std::mutex mutex_;
    Races waiting_;
};

// A subscription of CUPTI that tells a detector of all calls of the driver, from the constructor to end().
class PythonDriverWatch {
public:
    // `driver` is the path of a library with the functions of libcuda. Throws std::runtime_error that says why CUPTI or
    // the driver cannot be used.
    PythonDriverWatch(nanobind::object detector, const std::string &cupti, const std::string &driver);
    ~PythonDriverWatch() { end(); }
    PythonDriverWatch(const PythonDriverWatch &) = delete;
    PythonDriverWatch &operator=(const PythonDriverWatch &) = delete;

    // Python's lock is held. Nothing is attached after the call.
    void end() noexcept;
    // Calls the detector's function with the races that wait. Throws the exception of the function.
    void deliver();

    std::uint32_t cupti_version() const { return library_.version(); }

    nanobind::object detector; // invalid once the garbage collector has cleared the object

private:
    PythonRaceDetector &told() { return nanobind::cast<PythonRaceDetector &>(detector); }

    const cupti::Library library_;
    const watch::DriverQuestions questions_;
    FoundRaces found_;
    watch::DriverWatch watch_;
    std::optional<cupti::Subscription> subscription_;
};

} // namespace tcuda
