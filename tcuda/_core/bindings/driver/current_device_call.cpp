#include "bindings/driver/current_device_call.hpp"

#include "bindings/python/callable.hpp"
#include "bindings/python/python_calls.hpp"
#include "driver/thread_device.hpp"
#include "threads/published.hpp"

namespace tcuda {
namespace {

using CurrentDeviceCall = Callable<1>;

const ThreadDevice &thread_device() {
    static Published<const ThreadDevice> device;
    return device.get();
}

PyObject *call(PyObject *self, PyObject *const *, size_t flagged_count, PyObject *names) {
    if (PyVectorcall_NARGS(flagged_count) != 0 || names != nullptr) {
        PyErr_SetString(PyExc_TypeError, "getDevice() takes no arguments");
        return nullptr;
    }
    const int known = thread_device().index();
    if (known >= 0)
        return PyLong_FromLong(known);
    PyObject *const answer = tcuda::call(CurrentDeviceCall::of(self)->held[0]);
    const long index = answer == nullptr ? -1 : PyLong_AsLong(answer);
    if (index >= 0)
        ThreadDevice::remember(static_cast<int>(index));
    return answer;
}

} // namespace

PyObject *make_current_device_call_type() {
    return CurrentDeviceCall::make_type("tcuda._core.CurrentDeviceCall", sizeof(CurrentDeviceCall));
}

PyObject *make_current_device_call(PyObject *type, PyObject *ask) { return CurrentDeviceCall::make(type, call, {ask}); }

} // namespace tcuda
