#include "translated.hpp"

#include <cstddef>
#include <structmember.h>
#include <vector>

namespace tcuda {
namespace {

struct Translated {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *failure;
    PyObject *raise_instead;
};

Translated *as_translated(PyObject *object) { return reinterpret_cast<Translated *>(object); }

// The exception that is set, which is no longer set then. New reference.
PyObject *take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != nullptr)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

PyObject *translate(Translated *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *error = take_exception();
    std::vector<PyObject *> arguments{error};
    arguments.insert(arguments.end(), args, args + count);
    PyObject *result = PyObject_Vectorcall(self->raise_instead, arguments.data(), arguments.size(), nullptr);
    Py_DECREF(error);
    if (result != nullptr) {
        Py_DECREF(result);
        PyErr_SetString(PyExc_SystemError, "the translation of an exception raised none");
    }
    return nullptr;
}

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    Translated *translated = as_translated(self);
    PyObject *result = PyObject_Vectorcall(translated->function, args, flagged_count, names);
    if (result != nullptr || !PyErr_ExceptionMatches(translated->failure))
        return result;
    return translate(translated, args, PyVectorcall_NARGS(flagged_count));
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_translated(self)->function);
    Py_VISIT(as_translated(self)->failure);
    Py_VISIT(as_translated(self)->raise_instead);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(as_translated(self)->function);
    Py_CLEAR(as_translated(self)->failure);
    Py_CLEAR(as_translated(self)->raise_instead);
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

PyObject *make_translated_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Translated, vectorcall), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
        {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
        {Py_tp_clear, reinterpret_cast<void *>(clear)},
        {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {
        "tcuda._core.Translated",
        sizeof(Translated),
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        slots,
    };
    return PyType_FromSpec(&spec);
}

PyObject *make_translated(PyObject *type, PyObject *function, PyObject *failure, PyObject *raise_instead) {
    PyObject *self = PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0);
    if (self == nullptr)
        return nullptr;
    Py_INCREF(function);
    Py_INCREF(failure);
    Py_INCREF(raise_instead);
    Translated *translated = as_translated(self);
    translated->function = function;
    translated->failure = failure;
    translated->raise_instead = raise_instead;
    translated->vectorcall = call;
    return self;
}

} // namespace tcuda
