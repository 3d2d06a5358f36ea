#include "bindings/memory/segment_listener.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "bindings/python/python_calls.hpp"
#include "memory/records/segment_changes.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Lock rule: under this mutex nothing is called but Py_AddPendingCall(), which needs no lock of Python.
std::mutex segment_question;
bool segments_are_heard = false; // guarded by the mutex
std::atomic<bool> is_asked{false}; // the interpreter has the call in its queue
PyObject *segment_listener = nullptr; // guarded by Python's lock

int call_listener(void *) {
    is_asked = false;
    if (segment_listener == nullptr)
        return 0;
    const nb::object function = nb::borrow(segment_listener); // the call may replace the function
    return done(call(function.ptr())) ? 0 : -1;
}

// Does not wait for another thread that asks, or that was asking when this process was forked: the next segment asks
// again.
void ask_for_call() noexcept {
    const std::unique_lock lock(segment_question, std::try_to_lock);
    if (!lock.owns_lock() || !segments_are_heard || is_asked.exchange(true))
        return;
    if (Py_AddPendingCall(call_listener, nullptr) != 0)
        is_asked = false; // the queue is full
}

} // namespace

void listen_to_segments(nb::object function) {
    const bool heard = !function.is_none();
    nb::object before = nb::steal(std::exchange(segment_listener, heard ? function.release().ptr() : nullptr));
    {
        const std::lock_guard lock(segment_question); // after this, no thread asks the interpreter
        segments_are_heard = heard;
    }
    SegmentChanges::connect(heard ? ask_for_call : nullptr);
}

} // namespace tcuda
