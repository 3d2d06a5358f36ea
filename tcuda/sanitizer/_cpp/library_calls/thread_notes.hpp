// What a thread keeps between its calls of libraries.
#pragma once

#include <string>
#include <vector>

#include "sanitizer/_cpp/library_calls/open_group.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace tcuda::library_calls {

// The notes of earlier calls lend their storage to later calls, so that a call allocates nothing.
class ThreadNotes {
public:
    // Null at the end of the thread, when its variables have been destroyed already.
    static ThreadNotes *of_thread();

    OpenGroup &group() { return group_; }

    // Adds memory whose members have values of earlier calls: the caller sets all members.
    watch::NotedMemory &add(watch::CallNotes &notes);
    // Takes the last memory back.
    void remove_last(watch::CallNotes &notes);
    void lend(watch::CallNotes &notes);
    void take_back(watch::CallNotes &notes);

private:
    OpenGroup group_;
    std::vector<watch::NotedMemory> spare_;
    std::vector<watch::CallNotes> lists_; // empty ones, of calls within calls
};

} // namespace tcuda::library_calls
