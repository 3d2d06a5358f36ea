// An annotation: the memory that the work of a thread uses, as a Python program tells it.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace tcuda {

// The notes hold in the thread that calls begin(), until that thread calls end().
class PythonNotes {
public:
    explicit PythonNotes(const std::vector<races::RaceDetector::NamedUse> &uses)
        : notes_(std::make_unique<watch::CallNotes>()) {
        notes_->exclusive = true;
        for (const races::RaceDetector::NamedUse &use : uses) {
            watch::NotedMemory memory;
            memory.region = use.use.region;
            memory.kind = static_cast<kernel_uses::Kind>(use.use.kind);
            memory.kind_known = true;
            memory.label = use.label;
            notes_->memory.push_back(std::move(memory));
        }
    }
    ~PythonNotes() {
        if (!end())
            notes_.release(); // another thread still has the notes
    }
    PythonNotes(const PythonNotes &) = delete;
    PythonNotes &operator=(const PythonNotes &) = delete;

    // Does nothing if the notes hold already.
    void begin() {
        if (begun_)
            return;
        notes_->outer = watch::innermost_notes();
        watch::innermost_notes() = notes_.get();
        begun_ = true;
    }

    // False if the notes hold in another thread.
    bool end() {
        if (!begun_)
            return true;
        for (watch::CallNotes **place = &watch::innermost_notes(); *place != nullptr; place = &(*place)->outer)
            if (*place == notes_.get()) {
                *place = notes_->outer;
                begun_ = false;
                return true;
            }
        return false;
    }

private:
    std::unique_ptr<watch::CallNotes> notes_;
    bool begun_ = false;
};

} // namespace tcuda
