// A keyword argument of a jiterator function.
#pragma once

#include <Python.h>

namespace tcuda {

struct ElementwiseScalar {
    // tcuda/jiterator/_scalars.py has the same numbers.
    enum Kind : char { integer, real, truth, complex };

    Kind kind;
    union {
        long long integer;
        double real;
        bool truth;
        double complex[2];
    } value;

    // False, with no Python error set, if `object` is not a Python scalar that fits in 64 bits.
    bool read(PyObject *object) {
        if (PyFloat_CheckExact(object)) {
            kind = Kind::real;
            value.real = PyFloat_AsDouble(object);
        } else if (PyBool_Check(object)) {
            kind = Kind::truth;
            value.truth = object == Py_True;
        } else if (PyLong_CheckExact(object)) {
            int overflow = 0;
            kind = Kind::integer;
            value.integer = PyLong_AsLongLongAndOverflow(object, &overflow);
            return overflow == 0;
        } else if (PyComplex_CheckExact(object)) {
            kind = Kind::complex;
            value.complex[0] = PyComplex_RealAsDouble(object);
            value.complex[1] = PyComplex_ImagAsDouble(object);
        } else {
            return false;
        }
        return true;
    }
};

} // namespace tcuda
