#include "bindings/scopes/stream_scope.hpp"

#include <structmember.h>

#include <cstddef>
#include <utility>

#include "bindings/python/python_type.hpp"
#include "bindings/scopes/scope_exit.hpp"
#include "bindings/scopes/stream_entry.hpp"

namespace tcuda {
namespace {

struct StreamScope {
    PyObject_HEAD PyObject *stream, *source, *target;
    long long device;

    static StreamScope *of(PyObject *object) { return reinterpret_cast<StreamScope *>(object); }
};

void replace(PyObject *&member, PyObject *value) {
    Py_XINCREF(value);
    Py_XDECREF(std::exchange(member, value));
}

PyObject *enter(PyObject *self, PyObject *) {
    PyObject *const stream = StreamScope::of(self)->stream;
    if (stream == nullptr || stream == Py_None)
        Py_RETURN_NONE;
    PreviousStreams previous;
    Py_INCREF(stream); // another thread may replace the attribute
    const bool entered = enter_stream(self, stream, &previous);
    Py_DECREF(stream);
    if (!entered)
        return nullptr;
    replace(StreamScope::of(self)->source, previous.source);
    replace(StreamScope::of(self)->target, previous.target);
    StreamScope::of(self)->device = previous.device;
    Py_RETURN_NONE;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(StreamScope::of(self)->stream);
    Py_VISIT(StreamScope::of(self)->source);
    Py_VISIT(StreamScope::of(self)->target);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(StreamScope::of(self)->stream);
    Py_CLEAR(StreamScope::of(self)->source);
    Py_CLEAR(StreamScope::of(self)->target);
    return 0;
}

} // namespace

bool add_stream_scope(PyObject *module) {
    static PyMemberDef members[] = {
        {"stream", T_OBJECT, offsetof(StreamScope, stream), 0, nullptr},
        {"_source", T_OBJECT, offsetof(StreamScope, source), 0, nullptr},
        {"_target", T_OBJECT, offsetof(StreamScope, target), 0, nullptr},
        {"_source_device", T_LONGLONG, offsetof(StreamScope, device), 0, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static ScopeMethods methods;
    set_scope_methods(methods, enter);
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate<clear>)},
        {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
        {Py_tp_clear, reinterpret_cast<void *>(clear)},
        {Py_tp_members, members},
        {Py_tp_methods, methods},
        {0, nullptr},
    };
    static PyType_Spec spec = {"tcuda._core.StreamScope", sizeof(StreamScope), 0, base_flags | Py_TPFLAGS_HAVE_GC,
                               slots};
    return add_type(module, "StreamScope", &spec);
}

} // namespace tcuda
