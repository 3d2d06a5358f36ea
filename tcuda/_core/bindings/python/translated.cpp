#include "bindings/python/translated.hpp"

#include <vector>

#include "bindings/python/callable.hpp"
#include "bindings/python/raised.hpp"

namespace tcuda {
namespace {

using Translated = Callable<3>;
enum Held { function, failure, raise_instead };

PyObject *translate(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    PyObject *error = taken_exception();
    std::vector<PyObject *> arguments{error};
    arguments.insert(arguments.end(), args, args + count);
    PyObject *instead = Translated::of(self)->held[raise_instead];
    PyObject *result = PyObject_Vectorcall(instead, arguments.data(), arguments.size(), nullptr);
    Py_DECREF(error);
    if (result != nullptr) {
        Py_DECREF(result);
        PyErr_SetString(PyExc_SystemError, "the translation of an exception raised none");
    }
    return nullptr;
}

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    PyObject *const *const held = Translated::of(self)->held;
    PyObject *result = PyObject_Vectorcall(held[function], args, flagged_count, names);
    if (result != nullptr || !PyErr_ExceptionMatches(held[failure]))
        return result;
    return translate(self, args, PyVectorcall_NARGS(flagged_count));
}

} // namespace

PyObject *make_translated_type() { return Translated::make_type("tcuda._core.Translated", sizeof(Translated)); }

PyObject *make_translated(PyObject *type, PyObject *function, PyObject *failure, PyObject *raise_instead) {
    return Translated::make(type, call, {function, failure, raise_instead});
}

} // namespace tcuda
