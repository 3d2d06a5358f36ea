#include "sanitizer/_cpp/bindings/pending_races.hpp"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "bindings/threads/cpython_functions.hpp"
#include "sanitizer/_cpp/bindings/python_race.hpp"
#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "threads/published.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

thread_local bool delivering = false;

struct Delivery {
    Delivery() { delivering = true; }
    ~Delivery() { delivering = false; }
};

} // namespace

PendingRaces::PendingRaces() {
    pthread_atfork([] { pending_races().mutex_.lock(); }, [] { pending_races().mutex_.unlock(); },
                   [] {
                       pending_races().entries_.clear();
                       pending_races().asked_ = false;
                       pending_races().unasked_ = false;
                       pending_races().mutex_.unlock();
                   });
}

void PendingRaces::add(PythonRaceDetector &detector, const races::RaceDetector::Races &found) noexcept {
    if (found.empty())
        return;
    {
        const std::lock_guard lock(mutex_);
        for (const auto &race : found) {
            if (entries_.size() >= most) {
                ++dropped_;
                continue;
            }
            try {
                entries_.push_back({&detector, race});
            } catch (const std::bad_alloc &) {
                ++dropped_;
            }
        }
    }
    ask();
}

void PendingRaces::ask() noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_ || asked_.exchange(true))
        return;
    const bool full = Py_AddPendingCall(called_by_python, this) != 0;
    if (full)
        asked_ = false;
    unasked_ = full;
}

void PendingRaces::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

void PendingRaces::close_at_exit() {
    static bool registered = false; // guarded by Python's lock
    if (!std::exchange(registered, true))
        nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { pending_races().close(); }));
}

int PendingRaces::called_by_python(void *self) {
    auto &pending = *static_cast<PendingRaces *>(self);
    pending.asked_ = false;
    try {
        pending.flush();
    } catch (nb::python_error &error) {
        error.restore();
        return -1;
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

void PendingRaces::flush() {
    unasked_ = false;
    while (!delivering) {
        const PythonRaceDetector *detector = nullptr;
        nb::object on_race;
        PythonRace race;
        {
            const std::lock_guard lock(mutex_);
            if (entries_.empty() || (cpython.is_finalizing != nullptr && cpython.is_finalizing() != 0))
                return;
            detector = entries_.front().detector;
            on_race = detector->on_race; // the detector may go during the call
            race.race = std::move(entries_.front().race);
            entries_.pop_front();
        }
        if (!on_race.is_valid()) // the garbage collector has cleared the detector
            continue;
        const Delivery delivery;
        try {
            on_race(race);
        } catch (const nb::python_error &) {
            if (forget(detector) > 0)
                ask();
            throw;
        }
    }
}

std::size_t PendingRaces::forget(const PythonRaceDetector *detector) noexcept {
    const std::lock_guard lock(mutex_);
    const auto of_detector = [&](const Entry &entry) { return entry.detector == detector; };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), of_detector), entries_.end());
    return entries_.size();
}

PendingRaces &pending_races() {
    static Published<PendingRaces> pending;
    return pending.get();
}

} // namespace tcuda
