#include "sanitizer/_cpp/bindings/host_reports.hpp"

#include <Python.h>
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "bindings/python/interruption.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/cupti/call_depth.hpp"
#include "sanitizer/_cpp/host_accesses/page_watch.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

std::atomic<PythonRaceDetector *> listening{nullptr};
std::atomic<unsigned> reporting{0};
thread_local unsigned reporting_here = 0;

// A report in progress, which end_host_reports() waits for.
class Report {
public:
    Report() {
        reporting.fetch_add(1);
        ++reporting_here;
    }
    ~Report() {
        --reporting_here;
        reporting.fetch_sub(1);
    }
    Report(const Report &) = delete;
    Report &operator=(const Report &) = delete;

    PythonRaceDetector *detector() const { return listening.load(); }
};

races::RaceDetector::Races found_by(races::RaceDetector &detector, std::uintptr_t address, bool write, StackId stack) {
    races::RaceDetector::NamedUse named;
    named.use.region.set(address, 1, {{1, 1}});
    named.use.kind = write ? races::AccessKind::write : races::AccessKind::read;
    return detector.host_access(write ? "write by the host" : "read by the host", {&named, 1}, stack);
}

bool runs_python() { return PyGILState_GetThisThreadState() != nullptr; }

void report_at_once(std::uintptr_t address, bool write) {
    if (!runs_python())
        return;
    const nb::gil_scoped_acquire lock;
    const nb::error_scope before; // the access may be part of code that handles an error
    {
        const Report report;
        PythonRaceDetector *const detector = report.detector();
        if (detector == nullptr)
            return;
        const nb::object kept = nb::find(*detector); // the program may drop the detector meanwhile
        try {
            const Interruption outer;
            detector->tell(found_by(detector->detector, address, write, note_python_stack()));
        } catch (const nb::python_error &error) {
            Interruption::keep(error);
        }
    }
    Interruption::deliver();
}

void report_later(std::uintptr_t address, bool write) {
    if (!runs_python() || cupti::CallDepth::of_thread().any())
        return;
    const Report report;
    PythonRaceDetector *const detector = report.detector();
    if (detector == nullptr)
        return;
    try {
        pending_races().add(*detector, found_by(detector->detector, address, write, note_any_stack()));
    } catch (const std::exception &) { // without memory of the host, the detector misses the access
    }
}

// The child of a fork has neither the devices nor the other threads.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
    if (PythonRaceDetector *const detector = listening.exchange(nullptr))
        detector->detector.forget_watch_of_host();
    reporting.store(reporting_here);
});

} // namespace

void begin_host_reports(PythonRaceDetector &detector, HostReports way) {
    if (!PageWatch::supported())
        return;
    if (PythonRaceDetector *const before = listening.load())
        end_host_reports(*before);
    listening.store(&detector);
    detector.detector.watch_host(way == HostReports::at_once ? report_at_once : report_later);
}

void end_host_reports(PythonRaceDetector &detector) noexcept {
    PythonRaceDetector *expected = &detector;
    if (!listening.compare_exchange_strong(expected, nullptr))
        return;
    detector.detector.watch_host(nullptr);
    const nb::gil_scoped_release released; // a report may wait for the lock
    while (reporting.load() > reporting_here)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
}

} // namespace tcuda
