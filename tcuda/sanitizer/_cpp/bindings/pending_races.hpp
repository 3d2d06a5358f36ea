// The races that a callback of the driver has found, and that Python has not been told yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "sanitizer/_cpp/order/race_detector.hpp"

namespace tcuda {

struct PythonRaceDetector;

// A callback runs no Python code, even in a thread that holds Python's lock. The races wait here, and Python's main
// thread delivers the races to the detector's `on_race` as soon as that thread runs Python code. An exception of
// `on_race` is raised in the main thread, in the line of the call or in the next line, like a KeyboardInterrupt. The
// exception ends the delivery to that detector, as in PythonRaceDetector::tell(): the other pending races of the
// detector are dropped from the queue, and stay among the detector's races.
//
// Lock rule: under `mutex_` nothing is called but Py_INCREF and Py_AddPendingCall(). Py_AddPendingCall() needs no lock
// of Python, and its own mutex is a leaf that exists until the interpreter ends, and so until close(). A fork waits for
// `mutex_`; the child delivers no races that the parent has found.
class PendingRaces {
public:
    static constexpr std::size_t most = 1000; // more races are counted, and not delivered

    PendingRaces();

    // Registers close() for the start of the end of the interpreter: the queue then calls Python no more. The caller
    // holds Python's lock.
    void close_at_exit();

    // Any thread may call this, with or without Python's lock.
    void add(PythonRaceDetector &detector, const races::RaceDetector::Races &found) noexcept;

    // Delivers the races at once, in this thread, which holds Python's lock. Throws the exception of `on_race`. Does
    // nothing inside a delivery of this thread, and when the interpreter ends.
    void flush();

    // Asks the interpreter again, if its queue of calls was full before. Any thread may call this, at little cost.
    void retry() noexcept {
        if (unasked_.load(std::memory_order_relaxed))
            ask();
    }

    // Drops the races of a detector, which may be gone. Returns the number of races that are left.
    std::size_t forget(const PythonRaceDetector *detector) noexcept;

    // The number of races that found no room since the last call.
    std::size_t take_dropped() noexcept { return dropped_.exchange(0); }

private:
    struct Entry {
        PythonRaceDetector *detector;
        std::shared_ptr<const races::Race> race;
    };

    void close();
    void ask() noexcept;
    static int called_by_python(void *);

    std::mutex mutex_;
    std::deque<Entry> entries_;
    bool closed_ = false;
    std::atomic<std::size_t> dropped_{0};
    std::atomic<bool> asked_{false};   // the interpreter has our call in its queue
    std::atomic<bool> unasked_{false}; // the queue of the interpreter was full
};

// The queue of the process, which lives until the end.
PendingRaces &pending_races();

} // namespace tcuda
