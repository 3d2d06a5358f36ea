#include "bindings/python_stacks.hpp"

#include <dlfcn.h>

#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tcuda {
namespace {

// Functions of CPython that its stable ABI leaves out. All exist since Python 3.9, the instruction since 3.11.
struct Cpython {
    // Public since Python 3.13, under the first name. Null where no thread holds the lock and, since 3.12, where another
    // thread does. PyGILState_Check() does not do: in a process that has had a subinterpreter, its answer is always yes.
    PyThreadState *(*current)() = either<PyThreadState *()>("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
    PyObject *(*back)(PyObject *) = symbol<PyObject *(PyObject *)>("PyFrame_GetBack");
    int (*instruction)(PyObject *) = symbol<int(PyObject *)>("PyFrame_GetLasti");
    int (*line)(PyObject *, int) = symbol<int(PyObject *, int)>("PyCode_Addr2Line");

    bool complete() const { return back != nullptr && line != nullptr; }

    template <typename Function> static Function *symbol(const char *name) {
        return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
    }

    template <typename Function> static Function *either(const char *name, const char *older) {
        Function *const found = symbol<Function>(name);
        return found != nullptr ? found : symbol<Function>(older);
    }
};

const Cpython cpython;

struct Frame {
    PyObject *code = nullptr;
    int place = 0; // the instruction; before Python 3.11 the line, of which this is the negative
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
        try {
            by_hash.emplace(hash, number);
        } catch (...) {
            stacks.pop_back();
            throw;
        }
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

// Notes the stack of a thread while it lives; what it has noted is kept for its capacity.
class Noting {
public:
    Noting() {
        busy_ = true;
        frames().clear();
    }
    ~Noting() { // `busy_` until the end: dropping a reference may run Python code
        Py_XDECREF(frame_);
        for (const Frame &noted : frames())
            Py_XDECREF(noted.code);
        frames().clear();
        busy_ = false;
    }
    Noting(const Noting &) = delete;
    Noting &operator=(const Noting &) = delete;

    // Whether this thread is at it already: a garbage collection has come back.
    static bool busy() { return busy_; }

    void note() {
        frame_ = reinterpret_cast<PyObject *>(PyEval_GetFrame());
        Py_XINCREF(frame_);
        while (frame_ != nullptr) {
            auto *const typed = reinterpret_cast<PyFrameObject *>(frame_);
            Frame &noted = frames().emplace_back(); // what may throw comes before there is a reference
            noted.place = cpython.instruction != nullptr ? cpython.instruction(frame_) : -PyFrame_GetLineNumber(typed);
            noted.code = reinterpret_cast<PyObject *>(PyFrame_GetCode(typed));
            PyObject *const back = cpython.back(frame_);
            Py_DECREF(std::exchange(frame_, back));
        }
    }

    StackId number() {
        if (frames().empty())
            return stack_without_frames;
        bool is_new = false;
        const StackId number = table().number(frames(), &is_new);
        if (is_new) // the table has the references now
            frames().clear();
        return number;
    }

private:
    static Frames &frames() {
        static thread_local Frames frames;
        return frames;
    }

    static inline thread_local bool busy_ = false;
    PyObject *frame_ = nullptr;
};

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

bool holds_python_lock() {
    PyThreadState *const current = cpython.current == nullptr ? nullptr : cpython.current();
    return current != nullptr && current == PyGILState_GetThisThreadState();
}

StackId note_python_stack() {
    if (!cpython.complete() || !holds_python_lock())
        return stack_without_frames;
    if (Noting::busy())
        return stack_without_frames;
    Noting noting;
    noting.note();
    return noting.number();
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
