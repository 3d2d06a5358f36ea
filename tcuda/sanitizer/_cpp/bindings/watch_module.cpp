#include <nanobind/stl/string.h>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/bindings/python_driver_watch.hpp"
#include "sanitizer/_cpp/cupti/calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Self = PythonDriverWatch;

nb::dict watched_calls() {
    nb::dict made = new_dict();
    for (const cupti::WatchedCall &call : cupti::watched_calls())
        made[call.name] = call.id;
    return made;
}

int traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    if (nb::inst_ready(object))
        Py_VISIT(nb::inst_ptr<Self>(object)->detector.ptr());
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)}, {0, nullptr}};

} // namespace

// Adds the class DriverWatch to the module.
void bind_watch(nb::module_ &module) {
    nb::class_<Self>(module, "DriverWatch", nb::type_slots(slots))
        .def(
            "__init__",
            [](Self *self, nb::handle_t<PythonRaceDetector> detector, const std::string &cupti,
               const std::string &driver) { new (self) Self(nb::borrow(detector), cupti, driver); },
            nb::arg("detector"), nb::arg("cupti"), nb::arg("driver") = "libcuda.so.1")
        .def("end", &Self::end, nb::lock_self())
        .def_prop_ro("cupti_version", &Self::cupti_version);
    module.def("watched_calls", watched_calls);
}

} // namespace tcuda
