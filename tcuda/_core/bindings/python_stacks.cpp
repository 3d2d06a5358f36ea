#include "bindings/python_stacks.hpp"

#include <utility>

#include "bindings/cpython_functions.hpp"
#include "bindings/python_lock.hpp"
#include "bindings/stack_table.hpp"

namespace tcuda {
namespace {

// Notes the stack of this thread. Each thread keeps one vector of frames, for its capacity.
class Noting {
public:
    Noting() {
        busy_ = true;
        frames().clear();
    }
    // `busy_` stays set until the end: dropping a reference may run Python code.
    ~Noting() {
        Py_XDECREF(frame_);
        for (const StackFrame &noted : frames())
            Py_XDECREF(noted.code);
        frames().clear();
        busy_ = false;
    }
    Noting(const Noting &) = delete;
    Noting &operator=(const Noting &) = delete;

    // Whether this thread is noting its stack already: a garbage collection has called the core.
    static bool busy() { return busy_; }

    void note() {
        frame_ = reinterpret_cast<PyObject *>(PyEval_GetFrame());
        Py_XINCREF(frame_);
        while (frame_ != nullptr) {
            auto *const typed = reinterpret_cast<PyFrameObject *>(frame_);
            StackFrame &noted = frames().emplace_back(); // may throw, so it comes before the new reference
            noted.place = cpython.frame_instruction != nullptr ? cpython.frame_instruction(frame_)
                                                               : -PyFrame_GetLineNumber(typed);
            noted.code = reinterpret_cast<PyObject *>(PyFrame_GetCode(typed));
            PyObject *const back = cpython.frame_back(frame_);
            Py_DECREF(std::exchange(frame_, back));
        }
    }

    StackId number() {
        if (frames().empty())
            return stack_without_frames;
        bool is_new = false;
        const StackId number = stack_table().number(frames(), &is_new);
        if (is_new) // the references belong to the table now
            frames().clear();
        return number;
    }

private:
    static StackFrames &frames() {
        static thread_local StackFrames frames;
        return frames;
    }

    static inline thread_local bool busy_ = false;
    PyObject *frame_ = nullptr;
};

PyObject *description(const StackFrame &frame) {
    const int line = frame.place < 0 ? -frame.place : cpython.code_line(frame.code, frame.place);
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
    if (cpython.frame_back == nullptr || cpython.code_line == nullptr || !holds_python_lock())
        return stack_without_frames;
    if (Noting::busy())
        return stack_without_frames;
    Noting noting;
    noting.note();
    return noting.number();
}

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
