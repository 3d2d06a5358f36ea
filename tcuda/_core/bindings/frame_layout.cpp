#include "bindings/frame_layout.hpp"

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tcuda {
namespace {

// The beginning of the interpreter's structures, down to the last member that a walk reads. Each version of Python
// has declarations of its own, because one build of the core serves all versions from 3.12 on. A version that is not here has no
// walk. The declarations are tried on known frames before their first use (python_stacks.cpp).
//
// `Place` is what an instruction pointer points to.
struct Place {
    unsigned char opcode, argument;
};

struct ThreadHead {
    void *before, *next, *interpreter;
};

enum Owner : char { by_thread = 0, by_generator = 1, by_frame_object = 2, first_without_code = 3 };

struct Python310 {
    struct Frame {
        PyVarObject head;
        Frame *previous;
        PyObject *code;
        void *builtins, *globals, *locals, *value_stack, *trace;
        int stack_depth;
        char trace_lines, trace_opcodes;
        void *generator;
        int instruction; // in units of 2 bytes
    };
    struct Thread {
        ThreadHead head;
        Frame *frame;
    };
    struct Code {};
    template <typename Read> static Frame *current(const Thread *thread, Read &read) { return read(thread->frame); }
};

struct Python311 {
    struct Frame {
        void *function, *globals, *builtins, *locals;
        PyObject *code;
        void *object;
        Frame *previous;
        Place *instruction;
        int stack_top;
        bool is_entry;
        char owner;
    };
    struct CFrame {
        std::uint8_t use_tracing;
        Frame *frame;
    };
    struct Thread {
        ThreadHead head;
        int numbers[7];
        CFrame *cframe;
    };
    struct Code {
        PyVarObject head;
        void *constants, *names, *exceptions;
        int flags;
        short numbers[2];
        int counts[10];
        void *objects[9];
        int first_traceable;
        void *extra;
        Place places[1];
    };
    template <typename Read> static Frame *current(const Thread *thread, Read &read) {
        const CFrame *const cframe = read(thread->cframe);
        return cframe == nullptr ? nullptr : read(cframe->frame);
    }
};

struct Python312 {
    struct Frame {
        PyObject *code;
        Frame *previous;
        void *function, *globals, *builtins, *locals, *object;
        Place *instruction;
        int stack_top;
        std::uint16_t return_offset;
        char owner;
    };
    struct CFrame {
        Frame *frame;
    };
    struct Thread {
        ThreadHead head;
        unsigned status;
        int numbers[6];
        CFrame *cframe;
    };
    struct Code {
        PyVarObject head;
        void *constants, *names, *exceptions;
        int numbers[12];
        void *objects[8];
        std::uint64_t instrumentation;
        void *monitoring;
        int first_traceable;
        void *extra;
        Place places[1];
    };
    template <typename Read> static Frame *current(const Thread *thread, Read &read) {
        const CFrame *const cframe = read(thread->cframe);
        return cframe == nullptr ? nullptr : read(cframe->frame);
    }
};

struct Python313 {
    using Frame = Python312::Frame; // the first member is a code object, or None in a frame of the interpreter
    struct Thread {
        ThreadHead head;
        std::uintptr_t eval_breaker;
        unsigned status;
        int numbers[8];
        Frame *frame;
    };
    struct Code {
        PyVarObject head;
        void *constants, *names, *exceptions;
        int numbers[12];
        void *objects[9];
        std::uintptr_t instrumentation;
        void *monitoring;
        int first_traceable;
        void *extra;
        Place places[1];
    };
    template <typename Read> static Frame *current(const Thread *thread, Read &read) { return read(thread->frame); }
};

struct Python314 {
    struct Frame {
        PyObject *code; // with a mark in the lowest bits
        Frame *previous;
        void *function, *globals, *builtins, *locals, *object;
        Place *instruction;
        void *stack_pointer;
        std::uint16_t return_offset;
        char owner;
    };
    struct Thread {
        ThreadHead head;
        std::uintptr_t eval_breaker;
        unsigned status;
        int numbers[8];
        Frame *frame;
    };
    struct Code {
        PyVarObject head;
        void *constants, *names, *exceptions;
        int numbers[12];
        void *objects[9];
        std::uintptr_t instrumentation;
        void *monitoring;
        Py_ssize_t unique_id;
        int first_traceable;
        void *extra;
        Place places[1];
    };
    template <typename Read> static Frame *current(const Thread *thread, Read &read) { return read(thread->frame); }
};

#ifndef Py_LIMITED_API // a build for one version, which can compare
#if PY_VERSION_HEX < 0x030B0000
static_assert(offsetof(Python310::Frame, code) == offsetof(PyFrameObject, f_code));
static_assert(offsetof(Python310::Frame, instruction) == offsetof(PyFrameObject, f_lasti));
static_assert(offsetof(Python310::Thread, frame) == offsetof(PyThreadState, frame));
#elif PY_VERSION_HEX < 0x030C0000
static_assert(offsetof(Python311::Thread, cframe) == offsetof(PyThreadState, cframe));
static_assert(offsetof(Python311::CFrame, frame) == offsetof(_PyCFrame, current_frame));
static_assert(offsetof(Python311::Code, first_traceable) == offsetof(PyCodeObject, _co_firsttraceable));
static_assert(offsetof(Python311::Code, places) == offsetof(PyCodeObject, co_code_adaptive));
#elif PY_VERSION_HEX < 0x030D0000
static_assert(offsetof(Python312::Thread, cframe) == offsetof(PyThreadState, cframe));
static_assert(offsetof(Python312::CFrame, frame) == offsetof(_PyCFrame, current_frame));
static_assert(offsetof(Python312::Code, first_traceable) == offsetof(PyCodeObject, _co_firsttraceable));
static_assert(offsetof(Python312::Code, places) == offsetof(PyCodeObject, co_code_adaptive));
#elif PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
static_assert(offsetof(Python313::Thread, frame) == offsetof(PyThreadState, current_frame));
static_assert(offsetof(Python313::Code, first_traceable) == offsetof(PyCodeObject, _co_firsttraceable));
static_assert(offsetof(Python313::Code, places) == offsetof(PyCodeObject, co_code_adaptive));
#elif PY_VERSION_HEX < 0x030F0000 && !defined(Py_GIL_DISABLED)
static_assert(offsetof(Python314::Thread, frame) == offsetof(PyThreadState, current_frame));
static_assert(offsetof(Python314::Code, first_traceable) == offsetof(PyCodeObject, _co_firsttraceable));
static_assert(offsetof(Python314::Code, places) == offsetof(PyCodeObject, co_code_adaptive));
#endif
#endif

struct PlainRead {
    template <typename Value> Value operator()(const Value &value) { return value; }
    bool goes_on() { return true; }
};

// Reads memory that may not exist: the kernel copies the memory into a pipe, and says if it cannot.
class CarefulRead {
public:
    CarefulRead() {
        if (pipe(ends_) != 0)
            failed_ = true;
    }
    ~CarefulRead() {
        for (const int end : ends_)
            if (end >= 0)
                close(end);
    }
    CarefulRead(const CarefulRead &) = delete;
    CarefulRead &operator=(const CarefulRead &) = delete;

    // All zeros if the memory cannot be read.
    template <typename Value> Value operator()(const Value &value) {
        Value copy{};
        if (!failed_ && (write(ends_[1], &value, sizeof(value)) != sizeof(value) ||
                         ::read(ends_[0], &copy, sizeof(copy)) != sizeof(copy)))
            failed_ = true;
        return failed_ ? Value{} : copy;
    }
    bool goes_on() { return !failed_ && ++frames_ < 10000; }

private:
    int ends_[2] = {-1, -1};
    int frames_ = 0;
    bool failed_ = false;
};

template <typename Python, typename Read> FrameMark mark_of(const typename Python::Frame *frame, Read &read) {
    if constexpr (std::is_same_v<Python, Python310>)
        return {reinterpret_cast<std::uintptr_t>(read(frame->code)),
                static_cast<std::uintptr_t>(read(frame->instruction)), 0};
    else
        return {reinterpret_cast<std::uintptr_t>(read(frame->code)),
                reinterpret_cast<std::uintptr_t>(read(frame->instruction)),
                static_cast<std::uintptr_t>(read(frame->owner))};
}

enum class Meaning { noted, without_code, unfinished };

// Reads a frame of Python. `noted` becomes the frame if the result is Meaning::noted: a stack shows no other frames.
template <typename Python, typename Read> Meaning read_frame(const FrameMark &mark, StackFrame *noted, Read &read) {
    if constexpr (std::is_same_v<Python, Python310>) {
        const auto instruction = static_cast<int>(mark.instruction);
        noted->code = reinterpret_cast<PyObject *>(mark.code);
        noted->place = instruction < 0 ? -1 : 2 * instruction;
    } else {
        noted->code = reinterpret_cast<PyObject *>(mark.code & ~std::uintptr_t{7});
        if (mark.owner >= first_without_code || noted->code == nullptr)
            return Meaning::without_code;
        const auto *const code = reinterpret_cast<const typename Python::Code *>(noted->code);
        const auto instruction = static_cast<int>(reinterpret_cast<const Place *>(mark.instruction) - code->places);
        if (mark.owner != by_generator && instruction < read(code->first_traceable))
            return Meaning::unfinished;
        noted->place = instruction < 0 ? -1 : 2 * instruction;
    }
    return Meaning::noted;
}

template <typename Python> using ThreadOf = const typename Python::Thread *;

template <typename Python, typename Read> void walk(PyThreadState *state, WalkedFrames *walked) {
    Read read;
    walked->frames.clear();
    walked->marks.clear();
    walked->all_finished = true;
    const auto *const thread = reinterpret_cast<ThreadOf<Python>>(state);
    for (auto *frame = Python::current(thread, read); frame != nullptr && read.goes_on(); frame = read(frame->previous)) {
        walked->marks.push_back(mark_of<Python>(frame, read));
        // Filled in its place: a copy would wait until the members are written.
        StackFrame &noted = walked->frames.emplace_back();
        const Meaning meaning = read_frame<Python>(walked->marks.back(), &noted, read);
        if (meaning == Meaning::noted)
            continue;
        walked->frames.pop_back();
        if (meaning == Meaning::unfinished)
            walked->all_finished = false;
    }
}

template <typename Python> bool has_frames(PyThreadState *state, const FrameMarks &marks) {
    PlainRead read;
    const auto *frame = Python::current(reinterpret_cast<ThreadOf<Python>>(state), read);
    for (const FrameMark &mark : marks) {
        if (frame == nullptr || !(mark_of<Python>(frame, read) == mark))
            return false;
        frame = frame->previous;
    }
    return frame == nullptr;
}

struct Functions {
    FrameWalk *walk = nullptr, *careful_walk = nullptr;
    FrameComparison *comparison = nullptr;
};

template <typename Python> Functions functions_of() {
    return {walk<Python, PlainRead>, walk<Python, CarefulRead>, has_frames<Python>};
}

Functions functions_of_this_python() {
#ifdef Py_GIL_DISABLED
    return {};
#elif PY_VERSION_HEX < 0x030B0000
    return functions_of<Python310>();
#else
    switch (Py_Version >> 16) {
    case 0x030B:
        return functions_of<Python311>();
    case 0x030C:
        return functions_of<Python312>();
    case 0x030D:
        return functions_of<Python313>();
    case 0x030E:
        return functions_of<Python314>();
    default:
        return {};
    }
#endif
}

} // namespace

FrameWalk *frame_walk() { return functions_of_this_python().walk; }

FrameWalk *careful_frame_walk() { return functions_of_this_python().careful_walk; }

FrameComparison *frame_comparison() { return functions_of_this_python().comparison; }

#if PY_VERSION_HEX < 0x030B0000
int instruction_of_frame(PyObject *frame) {
    const int instruction = reinterpret_cast<Python310::Frame *>(frame)->instruction;
    return instruction < 0 ? -1 : 2 * instruction;
}
#endif

} // namespace tcuda
