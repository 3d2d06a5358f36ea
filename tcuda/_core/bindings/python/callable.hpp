// Python objects that can be called without a Python frame, and that hold references to other objects.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "bindings/python/python_type.hpp"

namespace tcuda {

// The layout of an object that holds `count` references.
template <std::size_t count> struct Callable {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *held[count];

    static Callable *of(PyObject *object) { return reinterpret_cast<Callable *>(object); }

    // An attribute for the reference at `place`.
    static PyMemberDef member(const char *name, std::size_t place) {
        const auto offset = static_cast<Py_ssize_t>(offsetof(Callable, held) + place * sizeof(PyObject *));
        return {name, T_OBJECT, offset, READONLY, nullptr};
    }

    // Creates a type whose objects have `size` bytes. New reference; null with a Python error set if that fails.
    static PyObject *make_type(const char *name, std::size_t size, std::vector<PyMemberDef> members = {},
                               std::vector<PyType_Slot> slots = {}, unsigned long flags = 0) {
        members.push_back({"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, vectorcall), READONLY, nullptr});
        members.push_back({nullptr, 0, 0, 0, nullptr});
        slots.push_back({Py_tp_dealloc, reinterpret_cast<void *>(deallocate<clear>)});
        slots.push_back({Py_tp_traverse, reinterpret_cast<void *>(traverse)});
        slots.push_back({Py_tp_clear, reinterpret_cast<void *>(clear)});
        slots.push_back({Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)});
        slots.push_back({Py_tp_members, members.data()});
        slots.push_back({0, nullptr});
        flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
        flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
        PyType_Spec spec = {name, static_cast<int>(size), 0, static_cast<unsigned int>(flags), slots.data()};
        return PyType_FromSpec(&spec);
    }

    // Creates an object of `type` that calls `call`. New reference; null with a Python error set if that fails.
    static PyObject *make(PyObject *type, vectorcallfunc call, const std::array<PyObject *, count> &references) {
        PyObject *self = PyType_GenericAlloc(reinterpret_cast<PyTypeObject *>(type), 0);
        if (self == nullptr)
            return nullptr;
        std::for_each(references.begin(), references.end(), [](PyObject *reference) { Py_INCREF(reference); });
        std::copy(references.begin(), references.end(), of(self)->held);
        of(self)->vectorcall = call;
        return self;
    }

private:
    static int traverse(PyObject *self, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(self));
        for (PyObject *reference : of(self)->held)
            Py_VISIT(reference);
        return 0;
    }

    static int clear(PyObject *self) {
        for (PyObject *&reference : of(self)->held)
            Py_CLEAR(reference);
        return 0;
    }
};

} // namespace tcuda
