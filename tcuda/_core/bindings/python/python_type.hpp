// Parts of Python types that the core makes without nanobind.
#pragma once

#include <Python.h>

namespace tcuda {

// The slot Py_tp_dealloc of a type with garbage collection. `clear` is the slot Py_tp_clear of the type.
template <inquiry clear> void deallocate(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// Creates a type and adds it to the module. False with a Python error set if that fails.
inline bool add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *const type = PyType_FromSpec(spec);
    if (type == nullptr)
        return false;
    const int status = PyObject_SetAttrString(module, name, type);
    Py_DECREF(type);
    return status == 0;
}

// The flags of a type from which Python classes inherit.
constexpr unsigned base_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;

} // namespace tcuda
