#include "bindings/threads/python_stacks.hpp"

#include <nanobind/nanobind.h>

#include <new>
#include <utility>

#include "bindings/python/owned.hpp"
#include "bindings/threads/cpython_functions.hpp"
#include "bindings/threads/python_lock.hpp"
#include "bindings/threads/stack_keeper.hpp"
#include "bindings/threads/stack_table.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Keeps the garbage collector from running Python code: Python 3.11 makes an object for a frame, and each new object
// may begin a collection.
class NoCollection {
#if PY_VERSION_HEX < 0x030C0000
public:
    NoCollection() : was_enabled_(PyGC_Disable()) {}
    ~NoCollection() {
        if (was_enabled_)
            PyGC_Enable();
    }
    NoCollection(const NoCollection &) = delete;
    NoCollection &operator=(const NoCollection &) = delete;

private:
    const int was_enabled_;
#endif
};

bool can_note() {
    return cpython.frame_back != nullptr && cpython.frame_instruction != nullptr && cpython.code_line != nullptr;
}

// The number of the stack with this innermost frame, a new reference; null for no frame. The caller has made the guard
// before the frame.
StackId number_of(PyObject *innermost, const NoCollection &) {
    static thread_local StackFrames frames; // for its capacity
    // The frames of the last stack. Many calls in a row have the same stack.
    static thread_local StackFrames last_frames;
    static thread_local StackId last = stack_without_frames;
    frames.clear();
    for (Owned frame(innermost); frame; frame.set(cpython.frame_back(frame.get()))) {
        StackFrame &noted = frames.emplace_back();
        noted.place = cpython.frame_instruction(frame.get());
        noted.code = reinterpret_cast<PyObject *>(PyFrame_GetCode(reinterpret_cast<PyFrameObject *>(frame.get())));
        Py_DECREF(noted.code); // the frame keeps the code
    }
    if (frames.empty())
        return stack_without_frames;
    if (last == stack_without_frames || !(frames == last_frames)) {
        last = stack_without_frames;
        const StackId number = stack_table().number(frames);
        std::swap(frames, last_frames);
        last = number;
    }
    return last;
}

// The stack of the innermost StackOfCall of the thread.
StackId &stack_of_call() {
    static thread_local StackId stack = stack_without_frames;
    return stack;
}

PyObject *description(const StackFrame &frame) {
    const int line = cpython.code_line(frame.code, frame.place);
    PyObject *name = PyObject_GetAttrString(frame.code, "co_name");
    PyObject *filename = PyObject_GetAttrString(frame.code, "co_filename");
    PyObject *made = name == nullptr || filename == nullptr
                         ? nullptr
                         : Py_BuildValue("{sOsOsi}", "name", name, "filename", filename, "line", line);
    Py_XDECREF(name);
    Py_XDECREF(filename);
    return made;
}

} // namespace

StackId note_python_stack() {
    if (!can_note() || !holds_python_lock())
        return stack_without_frames;
    const NoCollection guard;
    auto *const innermost = reinterpret_cast<PyObject *>(PyEval_GetFrame());
    Py_XINCREF(innermost);
    return number_of(innermost, guard);
}

StackId note_stack_of(PyThreadState *thread) {
    if (!can_note())
        return stack_without_frames;
    const NoCollection guard;
    return number_of(reinterpret_cast<PyObject *>(PyThreadState_GetFrame(thread)), guard);
}

StackId note_any_stack() noexcept {
    try {
        if (holds_python_lock())
            return note_python_stack();
        const StackId known = stack_of_call();
        return known != stack_without_frames ? known : stack_keeper().note();
    } catch (const std::bad_alloc &) {
        return stack_without_frames;
    }
}

StackOfCall::StackOfCall() : before_(std::exchange(stack_of_call(), note_python_stack())) {}

StackOfCall::~StackOfCall() { stack_of_call() = before_; }

void begin_stack_notes(std::chrono::milliseconds patience) {
    static bool registered = false; // guarded by Python's lock: no other lock may be held while Python code runs
    if (!registered) // before the interpreter ends threads
        nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { stack_keeper().close(); }));
    registered = true;
    stack_keeper().begin(patience);
}

void end_stack_notes() { stack_keeper().end(); }

PyObject *frames_of(StackId stack) {
    const StackFrames frames = stack_table().frames(stack);
    PyObject *list = PyList_New(0);
    for (const StackFrame &frame : frames) {
        PyObject *made = list == nullptr ? nullptr : description(frame);
        if (made == nullptr || PyList_Append(list, made) != 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

} // namespace tcuda
