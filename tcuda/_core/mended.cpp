#include "mended.hpp"

#include <cstddef>
#include <structmember.h>

#include "raised.hpp"

namespace tcuda {
namespace {

struct Mended {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *mend;
};

PyObject *method_type = nullptr; // types.MethodType

Mended *as_mended(PyObject *object) { return reinterpret_cast<Mended *>(object); }

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    const Mended *const mended = as_mended(self);
    if (PyVectorcall_NARGS(flagged_count) == 0) {
        PyErr_SetString(PyExc_TypeError, "a method needs an object");
        return nullptr;
    }
    PyObject *const first = args[0];
    PyObject *const result = PyObject_Vectorcall(mended->function, args, flagged_count, names);
    if (result != nullptr)
        return result;
    Raised raised;
    raised.take();
    for (int tries = 0; tries < most_tries; ++tries) {
        PyObject *done = PyObject_Vectorcall(mended->mend, &first, 1, nullptr);
        if (done != nullptr) {
            Py_DECREF(done);
            break;
        }
        raised.take();
    }
    raised.set_again();
    return nullptr;
}

PyObject *get(PyObject *self, PyObject *object, PyObject *) {
    if (object == nullptr) {
        Py_INCREF(self);
        return self;
    }
    PyObject *const arguments[] = {self, object};
    return PyObject_Vectorcall(method_type, arguments, 2, nullptr);
}

// What tells of the function: its name is the closure.
PyObject *attribute_of_function(PyObject *self, void *name) {
    return PyObject_GetAttrString(as_mended(self)->function, static_cast<const char *>(name));
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_mended(self)->function);
    Py_VISIT(as_mended(self)->mend);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(as_mended(self)->function);
    Py_CLEAR(as_mended(self)->mend);
    return 0;
}

void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

} // namespace

PyObject *make_mended_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Mended, vectorcall), READONLY, nullptr},
        {"__wrapped__", T_OBJECT, offsetof(Mended, function), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static char names[][13] = {"__doc__", "__module__", "__name__", "__qualname__"};
    static PyGetSetDef attributes[] = {
        {names[0], attribute_of_function, nullptr, nullptr, names[0]},
        {names[1], attribute_of_function, nullptr, nullptr, names[1]},
        {names[2], attribute_of_function, nullptr, nullptr, names[2]},
        {names[3], attribute_of_function, nullptr, nullptr, names[3]},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
        {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
        {Py_tp_clear, reinterpret_cast<void *>(clear)},
        {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
        {Py_tp_descr_get, reinterpret_cast<void *>(get)},
        {Py_tp_members, members},
        {Py_tp_getset, attributes},
        {0, nullptr},
    };
    static PyType_Spec spec = {
        "tcuda._core.Mended",
        sizeof(Mended),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
            Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    PyObject *types = PyImport_ImportModule("types");
    method_type = types == nullptr ? nullptr : PyObject_GetAttrString(types, "MethodType");
    Py_XDECREF(types);
    return method_type == nullptr ? nullptr : PyType_FromSpec(&spec);
}

PyObject *make_mended(PyObject *type, PyObject *function, PyObject *mend) {
    PyObject *self = PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0);
    if (self == nullptr)
        return nullptr;
    Py_INCREF(function);
    Py_INCREF(mend);
    as_mended(self)->function = function;
    as_mended(self)->mend = mend;
    as_mended(self)->vectorcall = call;
    return self;
}

} // namespace tcuda
