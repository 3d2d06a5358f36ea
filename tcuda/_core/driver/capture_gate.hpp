#pragma once

#include <atomic>
#include <thread>

#include "threads/interpreter.hpp"

namespace tcuda {

// Keeps records of events behind all work of a device apart from captures: such a record would invalidate a capture.
class CaptureGate {
public:
    // False if a capture is about to begin or in progress. After true, no capture begins until end_record().
    bool begin_record() {
        ++records_;
        if (captures_ == 0) {
            ++records_of_this_thread_;
            return true;
        }
        --records_;
        return false;
    }
    void end_record() {
        --records_of_this_thread_;
        --records_;
    }

    // Called before the driver begins a capture. Waits until no other thread records. A record takes microseconds. A
    // driver that waits for the devices instead of recording may take longer. A record of the same thread is one during
    // which a signal handler or a finalizer begins the capture, and ends only after this call.
    void begin_capture() {
        ++captures_;
        if (records_ == records_of_this_thread_)
            return;
        Absence absence;
        absence.leave();
        while (records_ != records_of_this_thread_)
            std::this_thread::yield();
    }
    void end_capture() { --captures_; }
    bool is_in_capture() const { return captures_ != 0; }

private:
    inline static thread_local int records_of_this_thread_ = 0;
    std::atomic<int> captures_{0}, records_{0};
};

} // namespace tcuda
