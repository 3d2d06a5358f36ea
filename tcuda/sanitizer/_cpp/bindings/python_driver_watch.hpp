// The object behind the Python class DriverWatch.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/cupti/subscription.hpp"
#include "sanitizer/_cpp/watch/driver_watch.hpp"
#include "sanitizer/_cpp/watch/graph_watch.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/launch_reader.hpp"

namespace tcuda {

// A subscription of CUPTI that tells a detector of all calls of the driver, from the constructor to end(). Callbacks
// run no Python code: the races that they find wait in pending_races().
class PythonDriverWatch {
public:
    // `driver` is the path of a library with the functions of libcuda. Throws std::runtime_error that says why CUPTI or
    // the driver cannot be used.
    PythonDriverWatch(nanobind::object detector, const std::string &cupti, const std::string &driver);
    ~PythonDriverWatch() { end(); }
    PythonDriverWatch(const PythonDriverWatch &) = delete;
    PythonDriverWatch &operator=(const PythonDriverWatch &) = delete;

    // The caller holds Python's lock. Nothing is attached after the call.
    void end() noexcept;

    nanobind::object detector;

private:
    PythonRaceDetector &told_; // `detector`, for callbacks, which do not call Python
    const cupti::Library library_;
    const watch::FindFunction find_;
    const watch::DriverQuestions questions_;
    const watch::KernelQuestions kernel_questions_;
    const watch::GraphQuestions graph_questions_;
    watch::LaunchReader launches_;
    watch::GraphWatch graphs_;
    watch::DriverWatch watch_;
    std::optional<cupti::Subscription> subscription_;
};

} // namespace tcuda
