#include "bindings/python/forwarder.hpp"

#include "bindings/python/callable.hpp"

namespace tcuda {
namespace {

using Forwarder = Callable<1>;

PyObject *call(PyObject *self, PyObject *const *args, size_t flagged_count, PyObject *names) {
    PyObject *const target = Forwarder::of(self)->held[0];
    Py_INCREF(target); // the call may replace the target
    PyObject *const result = PyObject_Vectorcall(target, args, flagged_count, names);
    Py_DECREF(target);
    return result;
}

} // namespace

PyObject *make_forwarder_type() {
    PyMemberDef target = Forwarder::member("target", 0);
    target.type = T_OBJECT_EX; // cannot be deleted into None
    target.flags = 0;
    return Forwarder::make_type("tcuda._core.Forwarder", sizeof(Forwarder), {target});
}

PyObject *make_forwarder(PyObject *type, PyObject *target) { return Forwarder::make(type, call, {target}); }

} // namespace tcuda
