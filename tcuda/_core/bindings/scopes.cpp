#include "bindings/scopes.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <structmember.h>
#include <vector>

#include "bindings/raised.hpp"

namespace tcuda {
namespace {

// The calls of the runtime

struct Calls {
    PyObject *get_device, *set_device, *current_stream, *use_stream, *enter_stream, *exit_stream, *default_stream;
    PyObject *members; // a tuple that keeps them
    long long default_handle;
};

PyObject *find_calls = nullptr;
const Calls *kept_calls = nullptr;
PyObject *name_ptr = nullptr, *name_device_id = nullptr;

// The calls, in `found` if they may not be kept. Null with a Python error set if there are none.
const Calls *calls_or_error(Calls *found) {
    if (kept_calls != nullptr)
        return kept_calls;
    PyObject *answer = PyObject_Vectorcall(find_calls, nullptr, 0, nullptr);
    if (answer == nullptr)
        return nullptr;
    PyObject *members;
    int keep;
    if (!PyArg_ParseTuple(answer, "Op", &members, &keep) ||
        !PyArg_ParseTuple(members, "OOOOOOO", &found->get_device, &found->set_device, &found->current_stream,
                          &found->use_stream, &found->enter_stream, &found->exit_stream, &found->default_stream)) {
        Py_DECREF(answer);
        return nullptr;
    }
    Py_INCREF(members);
    Py_DECREF(answer);
    found->members = members;
    PyObject *handle = PyObject_GetAttr(found->default_stream, name_ptr);
    found->default_handle = handle == nullptr ? -1 : PyLong_AsLongLong(handle);
    Py_XDECREF(handle);
    if (PyErr_Occurred()) {
        Py_DECREF(members);
        return nullptr;
    }
    if (!keep)
        return found;
    kept_calls = new (std::nothrow) Calls(*found);
    return kept_calls == nullptr ? found : kept_calls;
}

// Calls for the time of one function.
class FoundCalls {
public:
    FoundCalls() : calls_(calls_or_error(&found_)) {}
    FoundCalls(const FoundCalls &) = delete;
    FoundCalls &operator=(const FoundCalls &) = delete;
    ~FoundCalls() {
        if (calls_ == &found_)
            Py_DECREF(found_.members);
    }
    explicit operator bool() const { return calls_ != nullptr; }
    const Calls &operator*() const { return *calls_; }

private:
    Calls found_;
    const Calls *const calls_;
};

PyObject *call(PyObject *function) { return PyObject_Vectorcall(function, nullptr, 0, nullptr); }

PyObject *call(PyObject *function, PyObject *argument) {
    PyObject *const arguments[] = {argument};
    return PyObject_Vectorcall(function, arguments, 1, nullptr);
}

// The integer that `result` is, which is given up. -1 with a Python error set if there is none.
long long taken_integer(PyObject *result) {
    if (result == nullptr)
        return -1;
    const long long value = PyLong_AsLongLong(result);
    Py_DECREF(result);
    return value;
}

long long current_device(const Calls &calls) { return taken_integer(call(calls.get_device)); }

bool set_device(const Calls &calls, long long device) {
    PyObject *index = PyLong_FromLongLong(device);
    PyObject *result = index == nullptr ? nullptr : call(calls.set_device, index);
    Py_XDECREF(index);
    Py_XDECREF(result);
    return result != nullptr;
}

bool done(PyObject *result) {
    Py_XDECREF(result);
    return result != nullptr;
}

// Does a step that must not be left out, though a signal handler may raise in the Python code of it.
template <typename Step> void insist(Raised &raised, Step step) {
    for (int tries = 0; tries < most_tries; ++tries) {
        if (step())
            return;
        raised.take();
    }
}

void insist_on_device(Raised &raised, const Calls &calls, long long device) {
    insist(raised, [&] {
        const long long current = current_device(calls);
        if (current == -1 && PyErr_Occurred())
            return false;
        return current == device || set_device(calls, device);
    });
}

void insist_on_stream(Raised &raised, const Calls &calls, PyObject *stream) {
    insist(raised, [&] {
        PyObject *current = call(calls.current_stream);
        const bool is_current = current == stream;
        Py_XDECREF(current);
        return current != nullptr && (is_current || done(call(calls.use_stream, stream)));
    });
}

// The scopes that threads are in

struct Scope {
    PyObject *owner;          // the context manager
    bool abandoned;           // another thread has left it
    long long device;         // the device that was current before
    PyObject *stream_source;  // the stream that was current before on that device; null if no stream was entered
    PyObject *stream_target;  // the stream that was current before on the device of the stream
    long long stream_device;  // the device of the stream
};

using Stack = std::vector<Scope>;

struct Stacks {
    std::mutex mutex;
    std::vector<Stack *> all;
};

Stacks *stacks = new Stacks; // for ever: threads may end after static objects

using Lock = std::lock_guard<std::mutex>;

// The stack of this thread. The scopes of a thread that ends inside them stay allocated: it may not call Python any more.
struct ThreadStack {
    ThreadStack() { enroll(); }
    ~ThreadStack() {
        const Lock lock(stacks->mutex);
        stacks->all.erase(std::remove(stacks->all.begin(), stacks->all.end(), &scopes), stacks->all.end());
    }
    void enroll() {
        const Lock lock(stacks->mutex);
        stacks->all.push_back(&scopes);
    }
    Stack scopes;
};

Stack &own_stack() {
    thread_local ThreadStack stack;
    return stack.scopes;
}

void forget(const Scope &scope) {
    Py_DECREF(scope.owner);
    Py_XDECREF(scope.stream_source);
    Py_XDECREF(scope.stream_target);
}

void undo(const Scope &scope, const Calls &calls, Raised &raised) {
    if (scope.stream_source == nullptr) {
        insist_on_device(raised, calls, scope.device);
        return;
    }
    insist_on_device(raised, calls, scope.stream_device);
    insist(raised, [&] { return done(call(calls.exit_stream)); });
    // CuPy went back to its stack, which set_stream() does not touch; torch goes back to what was current.
    insist_on_stream(raised, calls, scope.stream_target);
    if (scope.device != scope.stream_device) {
        insist_on_device(raised, calls, scope.device);
        insist_on_stream(raised, calls, scope.stream_source);
    }
}

// Goes back from the scopes on top that other threads have left.
void undo_abandoned(const Calls &calls, Raised &raised) {
    Stack &stack = own_stack();
    while (true) {
        Scope top;
        {
            const Lock lock(stacks->mutex);
            if (stack.empty() || !stack.back().abandoned)
                return;
            top = stack.back();
            stack.pop_back();
        }
        undo(top, calls, raised);
        forget(top);
    }
}

// Whether the scope is noted. If not, for want of memory, a Python error is set.
bool note(const Scope &scope) {
    try {
        Stack &stack = own_stack();
        const Lock lock(stacks->mutex);
        stack.push_back(scope);
        return true;
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
        return false;
    }
}

enum class Place { here, elsewhere, nowhere };

// Takes the latest scope of `owner` off the stack of this thread, or marks it as abandoned if another thread is in it.
Place take(PyObject *owner, Scope *taken) {
    const auto is_meant = [owner](const Scope &scope) { return scope.owner == owner && !scope.abandoned; };
    Stack &own = own_stack();
    const Lock lock(stacks->mutex);
    const auto found = std::find_if(own.rbegin(), own.rend(), is_meant);
    if (found != own.rend()) {
        *taken = *found;
        own.erase(std::next(found).base());
        return Place::here;
    }
    for (Stack *stack : stacks->all) {
        const auto other = std::find_if(stack->rbegin(), stack->rend(), is_meant);
        if (other != stack->rend()) {
            other->abandoned = true;
            return Place::elsewhere;
        }
    }
    return Place::nowhere;
}

PyObject *none_unless(Raised &raised) {
    if (raised.set_again())
        return nullptr;
    Py_RETURN_NONE;
}

PyObject *leave(PyObject *owner) {
    Scope scope;
    if (take(owner, &scope) != Place::here)
        Py_RETURN_NONE;
    Raised raised;
    const FoundCalls calls;
    if (!calls) {
        forget(scope);
        return nullptr;
    }
    // What lies above a scope that is left, and was left by another thread, ends with it.
    undo_abandoned(*calls, raised);
    undo(scope, *calls, raised);
    undo_abandoned(*calls, raised);
    forget(scope);
    return none_unless(raised);
}

// The method __exit__ of every kind of scope, which has no use for its arguments.
PyObject *exit(PyObject *self, PyObject *const *, Py_ssize_t count, PyObject *names) {
    const Py_ssize_t given = count + (names == nullptr ? 0 : PyTuple_Size(names));
    if (given != 3)
        return PyErr_Format(PyExc_TypeError, "__exit__() takes 3 arguments, but %zd were given", given);
    return leave(self);
}

// Devices

struct DeviceScope {
    PyObject_HEAD
    PyObject *idx;
    long long prev_idx;
};

DeviceScope *as_device(PyObject *object) { return reinterpret_cast<DeviceScope *>(object); }

PyObject *enter_device(PyObject *self, PyObject *) {
    PyObject *idx = as_device(self)->idx;
    int overflow = 0; // of an index that the runtime refuses
    const long long index = idx == nullptr ? -1 : PyLong_AsLongLongAndOverflow(idx, &overflow);
    if (index == -1 && PyErr_Occurred())
        return nullptr;
    as_device(self)->prev_idx = -1;
    if (index < 0 && overflow <= 0) // nothing happens; not even initialisation
        Py_RETURN_NONE;
    const FoundCalls calls;
    if (!calls)
        return nullptr;
    Raised raised;
    undo_abandoned(*calls, raised);
    if (raised.set_again())
        return nullptr;
    const long long previous = current_device(*calls);
    if (previous == -1 && PyErr_Occurred())
        return nullptr;
    if (previous != index && !done(call((*calls).set_device, idx)))
        return nullptr;
    as_device(self)->prev_idx = previous;
    Py_INCREF(self);
    if (!note({self, false, previous, nullptr, nullptr, -1})) {
        raised.take();
        insist_on_device(raised, *calls, previous);
        Py_DECREF(self);
        return none_unless(raised);
    }
    Py_RETURN_NONE;
}


// Streams

// Makes `stream` current in a scope of `owner`. The streams that were current, borrowed: on the device that was current,
// and on that of the stream.
bool enter(PyObject *owner, PyObject *stream, PyObject **source, PyObject **target) {
    const FoundCalls found;
    if (!found)
        return false;
    const Calls &calls = *found;
    Raised raised;
    undo_abandoned(calls, raised);
    if (raised.set_again())
        return false;
    const long long index = taken_integer(PyObject_GetAttr(stream, name_device_id));
    if (index == -1 && PyErr_Occurred())
        return false;
    const long long handle = taken_integer(PyObject_GetAttr(stream, name_ptr));
    if (handle == -1 && PyErr_Occurred())
        return false;
    const long long device = current_device(calls);
    if (device == -1 && PyErr_Occurred())
        return false;
    *source = call(calls.current_stream);
    if (*source == nullptr)
        return false;
    *target = *source;
    Py_INCREF(*target);
    // A default stream is entered as the runtime's own object, which CuPy compares by identity.
    PyObject *entered = handle == calls.default_handle ? calls.default_stream : stream;
    bool is_current = device == index;
    if (!is_current && set_device(calls, index)) {
        Py_DECREF(*target);
        *target = call(calls.current_stream);
        is_current = *target != nullptr;
    }
    Py_INCREF(owner);
    if (is_current && done(call(calls.enter_stream, entered))) {
        if (note({owner, false, device, *source, *target, index}))
            return true;
        raised.take();
        insist(raised, [&] { return done(call(calls.exit_stream)); });
        insist_on_stream(raised, calls, *target);
    }
    if (PyErr_Occurred())
        raised.take();
    insist_on_device(raised, calls, device);
    Py_DECREF(owner);
    Py_DECREF(*source);
    Py_XDECREF(*target);
    raised.set_again();
    return false;
}

struct StreamScope {
    PyObject_HEAD
    PyObject *stream, *src_prev_stream, *dst_prev_stream;
};

StreamScope *as_scope(PyObject *object) { return reinterpret_cast<StreamScope *>(object); }

void replace(PyObject **member, PyObject *value) {
    PyObject *before = *member;
    Py_XINCREF(value);
    *member = value;
    Py_XDECREF(before);
}

PyObject *enter_scope(PyObject *self, PyObject *) {
    PyObject *stream = as_scope(self)->stream;
    if (stream == nullptr || stream == Py_None)
        Py_RETURN_NONE;
    PyObject *source, *target;
    Py_INCREF(stream); // which another thread may replace
    const bool entered = enter(self, stream, &source, &target);
    Py_DECREF(stream);
    if (!entered)
        return nullptr;
    replace(&as_scope(self)->src_prev_stream, source);
    replace(&as_scope(self)->dst_prev_stream, target);
    Py_RETURN_NONE;
}

PyObject *enter_stream(PyObject *self, PyObject *) {
    PyObject *source, *target;
    if (!enter(self, self, &source, &target))
        return nullptr;
    Py_INCREF(self);
    return self;
}

// The types

int visit_device(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_device(self)->idx);
    return 0;
}

int clear_device(PyObject *self) {
    Py_CLEAR(as_device(self)->idx);
    return 0;
}

int visit_scope(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_scope(self)->stream);
    Py_VISIT(as_scope(self)->src_prev_stream);
    Py_VISIT(as_scope(self)->dst_prev_stream);
    return 0;
}

int clear_scope(PyObject *self) {
    Py_CLEAR(as_scope(self)->stream);
    Py_CLEAR(as_scope(self)->src_prev_stream);
    Py_CLEAR(as_scope(self)->dst_prev_stream);
    return 0;
}

template <inquiry clear> void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

constexpr char enter_signature[] = "__enter__($self)\n--\n\n";
constexpr char exit_signature[] = "__exit__($self, type, value, traceback)\n--\n\n";
constexpr char stream_exit_signature[] = "__exit__($self, exc_type, exc_val, exc_tb)\n--\n\n";
const PyCFunction exit_function = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(exit));
constexpr unsigned base_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;

bool add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type == nullptr)
        return false;
    const int status = PyObject_SetAttrString(module, name, type);
    Py_DECREF(type);
    return status == 0;
}

} // namespace

bool add_scopes(PyObject *module) {
    name_ptr = PyUnicode_InternFromString("ptr");
    name_device_id = PyUnicode_InternFromString("device_id");
    if (name_ptr == nullptr || name_device_id == nullptr)
        return false;

    static PyMemberDef device_members[] = {
        {"idx", T_OBJECT_EX, offsetof(DeviceScope, idx), 0, nullptr},
        {"prev_idx", T_LONGLONG, offsetof(DeviceScope, prev_idx), 0, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyMethodDef device_methods[] = {
        {"__enter__", enter_device, METH_NOARGS, enter_signature},
        {"__exit__", exit_function, METH_FASTCALL | METH_KEYWORDS, exit_signature},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot device_slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate<clear_device>)},
        {Py_tp_traverse, reinterpret_cast<void *>(visit_device)},
        {Py_tp_clear, reinterpret_cast<void *>(clear_device)},
        {Py_tp_members, device_members},
        {Py_tp_methods, device_methods},
        {0, nullptr},
    };
    static PyType_Spec device_spec = {"tcuda._core.DeviceScope", sizeof(DeviceScope), 0,
                                      base_flags | Py_TPFLAGS_HAVE_GC, device_slots};

    static PyMemberDef scope_members[] = {
        {"stream", T_OBJECT, offsetof(StreamScope, stream), 0, nullptr},
        {"src_prev_stream", T_OBJECT, offsetof(StreamScope, src_prev_stream), 0, nullptr},
        {"dst_prev_stream", T_OBJECT, offsetof(StreamScope, dst_prev_stream), 0, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyMethodDef scope_methods[] = {
        {"__enter__", enter_scope, METH_NOARGS, enter_signature},
        {"__exit__", exit_function, METH_FASTCALL | METH_KEYWORDS, exit_signature},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot scope_slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate<clear_scope>)},
        {Py_tp_traverse, reinterpret_cast<void *>(visit_scope)},
        {Py_tp_clear, reinterpret_cast<void *>(clear_scope)},
        {Py_tp_members, scope_members},
        {Py_tp_methods, scope_methods},
        {0, nullptr},
    };
    static PyType_Spec scope_spec = {"tcuda._core.StreamScope", sizeof(StreamScope), 0,
                                     base_flags | Py_TPFLAGS_HAVE_GC, scope_slots};

    static PyMethodDef stream_methods[] = {
        {"__enter__", enter_stream, METH_NOARGS, enter_signature},
        {"__exit__", exit_function, METH_FASTCALL | METH_KEYWORDS, stream_exit_signature},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot stream_slots[] = {{Py_tp_methods, stream_methods}, {0, nullptr}};
    static PyType_Spec stream_spec = {"tcuda._core.StreamMethods", 0, 0, base_flags, stream_slots};

    return add_type(module, "DeviceScope", &device_spec) && add_type(module, "StreamScope", &scope_spec) &&
           add_type(module, "StreamMethods", &stream_spec);
}

void find_calls_by(PyObject *function) { replace(&find_calls, function); }

void forget_scopes() {
    kept_calls = nullptr;
    Stack left;
    left.swap(own_stack());
    stacks = new Stacks; // another thread of the parent may have held the lock
    stacks->all.push_back(&own_stack());
    for (const Scope &scope : left)
        forget(scope);
}

} // namespace tcuda
