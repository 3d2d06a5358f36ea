#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sanitizer/_cpp/bindings/python_mpi_watch.hpp"
#include "sanitizer/_cpp/mpi/interception.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Self = PythonMpiWatch;

int traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    if (nb::inst_ready(object))
        Py_VISIT(nb::inst_ptr<Self>(object)->detector.ptr());
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)}, {0, nullptr}};

} // namespace

// Adds the class MpiWatch to the module.
void bind_mpi(nb::module_ &module) {
    nb::class_<Self>(module, "MpiWatch", R"(
    Reports to a race detector the calls of MPI that mpi4py makes, until :meth:`end`.

    A call that is complete when it returns is an access of the host. A nonblocking call uses its memory until a wait
    for its request, or a test that finds the request complete. Only uses of device memory and of page-locked memory are
    told. The races wait for Python's main thread (:func:`deliver_races`).

    Args:
        detector: The detector.

    Raises:
        RuntimeError: There is such a watch already.)",
                     nb::type_slots(slots))
        .def(
            "__init__",
            [](Self *self, nb::handle_t<PythonRaceDetector> detector) { new (self) Self(nb::borrow(detector)); },
            nb::arg("detector"))
        .def("end", &Self::end, nb::lock_self(),
             "End the watch. Requests in progress count as complete. A second call does nothing.");
    module.def("noticed_mpi_functions", mpi::noticed_functions,
               "Return the names of the functions of MPI whose calls are noticed; none if mpi4py is not loaded.");
}

} // namespace tcuda
