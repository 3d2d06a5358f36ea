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
    nb::class_<Self>(module, "DriverWatch", R"(
    Tells a detector of all calls of the CUDA driver that this process makes, by CUPTI.

    The races wait as :func:`deliver_races` says, because no Python code runs during a call of the driver.

    Args:
        detector: The detector.
        cupti: The path or the name of CUPTI's library.
        driver: The path or the name of the driver's library.

    Raises:
        RuntimeError: CUPTI or the driver cannot be used; the text says why.)",
                     nb::type_slots(slots))
        .def(
            "__init__",
            [](Self *self, nb::handle_t<PythonRaceDetector> detector, const std::string &cupti,
               const std::string &driver) { new (self) Self(nb::borrow(detector), cupti, driver); },
            nb::arg("detector"), nb::arg("cupti"), nb::arg("driver") = "libcuda.so.1")
        .def("end", &Self::end, nb::lock_self(),
             "End the watch. Afterwards nothing is attached, and no thread tells the detector of anything.");
}

} // namespace tcuda
