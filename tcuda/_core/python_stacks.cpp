#include "python_stacks.hpp"

#include <dlfcn.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tcuda {
namespace {

// Public functions of CPython that its stable ABI leaves out. All exist since Python 3.9, the instruction since 3.11.
struct Cpython {
    int (*holds_lock)() = symbol<int()>("PyGILState_Check");
    PyObject *(*back)(PyObject *) = symbol<PyObject *(PyObject *)>("PyFrame_GetBack");
    int (*instruction)(PyObject *) = symbol<int(PyObject *)>("PyFrame_GetLasti");
    int (*line)(PyObject *, int) = symbol<int(PyObject *, int)>("PyCode_Addr2Line");

    bool complete() const { return holds_lock != nullptr && back != nullptr && line != nullptr; }

    template <typename Function> static Function *symbol(const char *name) {
        return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
    }
};

const Cpython cpython;

struct Frame {
    PyObject *code;
    int place; // the instruction; before Python 3.11 the line, of which this is the negative
    bool operator==(const Frame &other) const { return code == other.code && place == other.place; }
};

using Frames = std::vector<Frame>;

// Lock rule: nothing is called under `mutex` but what counts references up.
struct Table {
    std::mutex mutex;
    std::deque<Frames> stacks{Frames{}, Frames{}}; // by number; the first two are those of StackId
    std::unordered_multimap<std::size_t, StackId> by_hash;

    // Takes over the references of the frames if the stack is new, which `*is_new` tells.
    StackId number(const Frames &frames, bool *is_new) {
        std::size_t hash = frames.size();
        for (const Frame &frame : frames)
            hash = (hash ^ reinterpret_cast<std::size_t>(frame.code) ^ static_cast<std::size_t>(frame.place) << 48) *
                   0x9E3779B97F4A7C15ull;
        const std::lock_guard lock(mutex);
        const auto range = by_hash.equal_range(hash);
        for (auto known = range.first; known != range.second; ++known)
            if (stacks[known->second] == frames)
                return known->second;
        const auto number = static_cast<StackId>(stacks.size());
        stacks.push_back(frames);
        by_hash.emplace(hash, number);
        *is_new = true;
        return number;
    }

    Frames frames(StackId number) {
        const std::lock_guard lock(mutex);
        return stacks.at(number);
    }
};

Table &table() {
    static Table *const table = new Table; // lives for ever, as the code objects in it do
    return *table;
}

PyObject *description(const Frame &frame) {
    const int line = frame.place < 0 ? -frame.place : cpython.line(frame.code, frame.place);
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

bool holds_python_lock() { return cpython.holds_lock != nullptr && cpython.holds_lock() != 0; }

StackId note_python_stack() {
    if (!cpython.complete() || !holds_python_lock())
        return stack_without_frames;
    static thread_local Frames frames; // kept for its capacity
    static thread_local bool busy = false;
    if (busy) // a garbage collection within this very function came back
        return stack_without_frames;
    busy = true;
    frames.clear();
    auto *frame = reinterpret_cast<PyObject *>(PyEval_GetFrame());
    Py_XINCREF(frame);
    while (frame != nullptr) {
        auto *const typed = reinterpret_cast<PyFrameObject *>(frame);
        const int place = cpython.instruction != nullptr ? cpython.instruction(frame) : -PyFrame_GetLineNumber(typed);
        frames.push_back({reinterpret_cast<PyObject *>(PyFrame_GetCode(typed)), place});
        PyObject *back = cpython.back(frame);
        Py_DECREF(frame);
        frame = back;
    }
    bool is_new = false;
    const StackId number = frames.empty() ? stack_without_frames : table().number(frames, &is_new);
    if (!is_new)
        for (const Frame &noted : frames)
            Py_DECREF(noted.code);
    busy = false;
    return number;
}

PyObject *frames_of(StackId stack) {
    const Frames frames = table().frames(stack);
    PyObject *list = PyList_New(0);
    for (const Frame &frame : frames) {
        PyObject *made = list == nullptr ? nullptr : description(frame);
        if (made == nullptr || PyList_Append(list, made) != 0)
            Py_CLEAR(list);
        Py_XDECREF(made);
    }
    return list;
}

} // namespace tcuda
