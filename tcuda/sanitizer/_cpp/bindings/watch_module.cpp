#include <nanobind/stl/string.h>

#include "sanitizer/_cpp/bindings/python_driver_watch.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Self = PythonDriverWatch;

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
        .def("end", &Self::end, nb::lock_self());
}

} // namespace tcuda
