#include "bindings/scopes/device_scope.hpp"

#include <structmember.h>

#include <cstddef>

#include "bindings/python/python_calls.hpp"
#include "bindings/python/python_type.hpp"
#include "bindings/scopes/scope_exit.hpp"

namespace tcuda {
namespace {

struct DeviceScope {
    PyObject_HEAD PyObject *idx;
    long long prev_idx;

    static DeviceScope *of(PyObject *object) { return reinterpret_cast<DeviceScope *>(object); }
};

PyObject *enter(PyObject *self, PyObject *) {
    PyObject *const idx = DeviceScope::of(self)->idx;
    int overflow = 0; // positive for an index that the runtime refuses
    const long long index = idx == nullptr ? -1 : PyLong_AsLongLongAndOverflow(idx, &overflow);
    if (index == -1 && PyErr_Occurred())
        return nullptr;
    DeviceScope::of(self)->prev_idx = -1;
    if (index < 0 && overflow <= 0) // such a scope has no effect, and does not initialise the runtime
        Py_RETURN_NONE;
    const FoundCalls calls;
    if (!calls)
        return nullptr;
    Raised raised;
    undo_abandoned(*calls, raised);
    if (raised.set_again())
        return nullptr;
    const long long previous = (*calls).current_device();
    if (previous == -1 && PyErr_Occurred())
        return nullptr;
    if (previous != index && !done(call((*calls).set_device, idx)))
        return nullptr;
    DeviceScope::of(self)->prev_idx = previous;
    Py_INCREF(self);
    if (!note_entered({self, false, previous, nullptr, nullptr, -1})) {
        raised.take();
        enter_device_with_retries(raised, *calls, previous);
        Py_DECREF(self);
        return none_unless(raised);
    }
    Py_RETURN_NONE;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(DeviceScope::of(self)->idx);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(DeviceScope::of(self)->idx);
    return 0;
}

} // namespace

bool add_device_scope(PyObject *module) {
    static PyMemberDef members[] = {
        {"idx", T_OBJECT_EX, offsetof(DeviceScope, idx), 0, nullptr},
        {"prev_idx", T_LONGLONG, offsetof(DeviceScope, prev_idx), 0, nullptr},
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
    static PyType_Spec spec = {"tcuda._core.DeviceScope", sizeof(DeviceScope), 0, base_flags | Py_TPFLAGS_HAVE_GC,
                               slots};
    return add_type(module, "DeviceScope", &spec);
}

} // namespace tcuda
