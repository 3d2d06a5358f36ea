// Notes: what the code around a call of the driver knows of the memory that the call uses.
#pragma once

#include <string>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/order/region.hpp"

namespace tcuda::watch {

// Memory that the next calls of this thread may use.
struct NotedMemory {
    races::Region region;        // of an array; if `extent_known` is false, only region.address() counts
    bool extent_known = true;
    bool kind_known = false;     // otherwise the kernel itself tells what it does with the memory
    kernel_uses::Kind kind = kernel_uses::Kind::both;
    std::string label;
};

// The notes of one scope of a thread: a call of CuPy's Function, an annotation of the user, a call of a library.
struct CallNotes {
    std::string name;                 // of the library function; empty otherwise
    std::vector<NotedMemory> memory;
    bool exclusive = false;           // whether the calls use no other memory than `memory` (an annotation)
    CallNotes *outer = nullptr;       // the scope around this scope
};

// The innermost notes of this thread; null if there are none.
inline CallNotes *&innermost_notes() {
    static thread_local CallNotes *notes = nullptr;
    return notes;
}

// Adds notes for its lifetime, in this thread.
class NotesScope {
public:
    explicit NotesScope(CallNotes &notes) : notes_(notes) {
        notes_.outer = innermost_notes();
        innermost_notes() = &notes_;
    }
    ~NotesScope() { innermost_notes() = notes_.outer; }
    NotesScope(const NotesScope &) = delete;
    NotesScope &operator=(const NotesScope &) = delete;

private:
    CallNotes &notes_;
};

} // namespace tcuda::watch
