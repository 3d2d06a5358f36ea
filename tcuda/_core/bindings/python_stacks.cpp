#include "bindings/python_stacks.hpp"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include <atomic>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "bindings/containers.hpp"
#include "bindings/cpython_functions.hpp"
#include "bindings/frame_layout.hpp"
#include "bindings/python_lock.hpp"
#include "bindings/stack_keeper.hpp"
#include "bindings/stack_table.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Collects the stack of this thread with Python's functions. Each thread keeps one vector of frames, for its capacity.
// The code objects are borrowed: the frames of this thread keep them alive.
class Noting {
public:
    Noting() {
        busy_ = true;
        frames().clear();
    }
    // `busy_` stays set until the end: dropping a reference may run Python code.
    ~Noting() {
        Py_XDECREF(frame_);
        busy_ = false;
    }
    Noting(const Noting &) = delete;
    Noting &operator=(const Noting &) = delete;

    // Whether this thread is noting its stack already: a garbage collection has called the core.
    static bool busy() { return busy_; }

    // Fewer frames if there is no memory for an object of a frame.
    const StackFrames &note() {
        const bool had_error = PyErr_Occurred() != nullptr;
        frame_ = reinterpret_cast<PyObject *>(PyEval_GetFrame());
        Py_XINCREF(frame_);
        while (frame_ != nullptr) {
            StackFrame &noted = frames().emplace_back();
            noted.place = cpython.frame_instruction(frame_);
            noted.code = reinterpret_cast<PyObject *>(PyFrame_GetCode(reinterpret_cast<PyFrameObject *>(frame_)));
            Py_DECREF(noted.code);
            PyObject *const back = cpython.frame_back(frame_);
            Py_DECREF(std::exchange(frame_, back));
        }
        if (!had_error && PyErr_Occurred() != nullptr)
            PyErr_Clear();
        return frames();
    }

private:
    static StackFrames &frames() {
        static thread_local StackFrames frames;
        return frames;
    }

    static inline thread_local bool busy_ = false;
    PyObject *frame_ = nullptr;
};

// The functions that read frames without the lock. The functions never change after their first use.
struct Reading {
    FrameWalk *walk;
    FrameComparison *has_frames;
};
// Null until the reading was tried, and after the end of the interpreter has begun.
std::atomic<const Reading *> usable_reading{nullptr};
// The number of threads that read frames without the lock now. The end of the interpreter waits for them: it deletes the
// states of threads.
std::atomic<int> readers{0};

class Reader {
public:
    Reader() {
        readers.fetch_add(1); // before the read of `usable_reading`, so that close() sees this reader
        reading_ = usable_reading.load();
        if (reading_ != nullptr)
            thread_ = PyGILState_GetThisThreadState();
    }
    ~Reader() { readers.fetch_sub(1); }
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    // Whether there is a stack. Python does not know all threads.
    bool has_stack() const { return thread_ != nullptr; }
    bool has_frames(const FrameMarks &marks) const { return reading_->has_frames(thread_, marks); }
    void walk(WalkedFrames *walked) const { reading_->walk(thread_, walked); }

private:
    const Reading *reading_;
    PyThreadState *thread_ = nullptr;
};

// The last stack that a thread has noted. The table of stacks keeps its code objects alive, so its marks stay valid.
struct LastNote {
    WalkedFrames walked;
    FrameMarks marks; // of the stack `number`; none if the marks do not tell the stack
    StackId number = stack_without_frames;
};

StackId number_known_part(const StackFrames &frames) {
    const StackFrames known = stack_table().known(frames);
    return known.empty() ? stack_without_frames : stack_table().number(known).value_or(stack_without_frames);
}

StackId note_by_reading(bool has_lock) {
    static thread_local LastNote last;
    {
        const Reader reader;
        if (!reader.has_stack())
            return stack_without_frames;
        if (!last.marks.empty() && reader.has_frames(last.marks))
            return last.number;
        last.marks.clear();
        reader.walk(&last.walked);
    }
    const StackFrames &frames = last.walked.frames;
    if (frames.empty())
        return stack_without_frames;
    std::optional<StackId> number = stack_table().number(frames);
    if (!number) {
        if (has_lock)
            stack_table().keep(frames);
        else if (!stack_keeper().keep(frames))
            return number_known_part(frames);
        number = stack_table().number(frames);
    }
    last.number = *number;
    // The table does not own the code of an unfinished frame, so another code may come to the same address.
    if (last.walked.all_finished)
        std::swap(last.marks, last.walked.marks);
    return last.number;
}

bool can_note() {
    return cpython.frame_back != nullptr && cpython.frame_instruction != nullptr && cpython.code_line != nullptr;
}

// Whether both ways see the same frames here.
bool both_walks_agree() {
    PyThreadState *const thread = PyGILState_GetThisThreadState();
    WalkedFrames walked;
    careful_frame_walk()(thread, &walked);
    Noting noting;
    return noting.note() == walked.frames && frame_comparison()(thread, walked.marks);
}

// Compares both ways on stacks with all kinds of frames: of functions, classes, generators, comprehensions, and of Python
// code that C code calls.
bool walk_is_right() {
    if (frame_walk() == nullptr || !can_note() || !holds_python_lock() || Noting::busy())
        return false;
    static constexpr const char *source = R"(
def deeper(n):
    return compare() if n == 0 else deeper(n - 1)
def generator():
    yield deeper(3)
    yield [deeper(n) for n in (0, 1)]
results = [compare(), deeper(0), *generator(), [r for r in generator()]]
sorted((1, 2), key=lambda n: results.append(next(generator())) or n)
class Body:
    results.append(compare())
    def __repr__(self):
        results.append([*map(deeper, (0, 2))])
        return ""
repr(Body())
async def coroutine():
    results.append(deeper(1))
try:
    coroutine().send(None)
except StopIteration:
    pass
)";
    bool right = true;
    int compared = 0;
    nb::dict names = new_dict();
    names["compare"] = nb::cpp_function([&] {
        ++compared;
        right = right && both_walks_agree();
    });
    nb::module_::import_("builtins").attr("exec")(source, names);
    names.attr("clear")(); // the functions and their globals refer to each other
    return right && compared > 10;
}

// At the end of the interpreter, before it ends threads.
void close() {
    usable_reading = nullptr;
    while (readers.load() > 0)
        std::this_thread::yield();
    stack_keeper().end_all();
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
    if (!can_note() || !holds_python_lock() || Noting::busy())
        return stack_without_frames;
    Noting noting;
    const StackFrames &frames = noting.note();
    if (frames.empty())
        return stack_without_frames;
    if (const auto known = stack_table().number(frames))
        return *known;
    stack_table().keep(frames);
    return *stack_table().number(frames);
}

StackId note_any_stack() noexcept {
    try {
        const bool has_lock = holds_python_lock();
        if (has_lock && usable_reading.load() == nullptr)
            return note_python_stack();
        return note_by_reading(has_lock);
    } catch (const std::bad_alloc &) {
        return stack_without_frames;
    }
}

void begin_stack_notes(std::chrono::milliseconds patience) {
    static bool tried = false; // guarded by Python's lock: no other lock may be held while Python code runs
    if (!tried) {
        const bool right = walk_is_right();
        if (!std::exchange(tried, true) && right) { // another thread may have tried meanwhile
            pthread_atfork(nullptr, nullptr, [] { readers = 0; }); // the child has only the thread that forks
            nb::module_::import_("atexit").attr("register")(nb::cpp_function(close));
            usable_reading = new Reading{frame_walk(), frame_comparison()};
        }
    }
    if (usable_reading.load() != nullptr)
        stack_keeper().begin(patience);
}

void end_stack_notes() { stack_keeper().end(); }

bool notes_stacks_without_lock() { return usable_reading.load() != nullptr; }

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
