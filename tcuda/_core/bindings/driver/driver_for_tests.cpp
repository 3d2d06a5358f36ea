// The driver table that only tests use.
#include <nanobind/stl/string.h>

#include "driver/faulty_driver.hpp"
#include "driver/host_room.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

void call_meanwhile(FaultyDriver &driver, nb::object function) {
    driver.meanwhile([function] {
        const nb::gil_scoped_acquire lock;
        try {
            function();
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(function);
        }
    });
}

} // namespace

void bind_driver_for_tests(nb::module_ &module) {
    nb::class_<FaultyDriver, Driver>(module, "FaultyDriver", "The table of ``driver`` with one call that fails.")
        .def(nb::init<Driver &>(), nb::arg("driver"), nb::keep_alive<1, 2>())
        .def("fail", &FaultyDriver::fail, nb::arg("entry"), nb::arg("calls"), nb::arg("status"),
             "Let ``entry`` fail once with ``status``, after ``calls`` calls that succeed.")
        .def_prop_ro("failed", &FaultyDriver::failed, "Return whether the failure has happened.")
        .def("meanwhile", call_meanwhile, nb::arg("function"),
             "Let every call for memory wait until a thread of its own has called ``function``.")
        .def("forget_host_uses", &FaultyDriver::forget_host_uses,
             "Let the table know as little of the uses of host memory as CUDA does.")
        .def("wait_for_events", &FaultyDriver::wait_for_events,
             "Let each question about an event wait for the event, so that unused memory is unused at once.")
        .def("use_host_node", &FaultyDriver::use_host_node, nb::arg("node"),
             "Let ``node`` be the NUMA node of all devices.")
        .def("limit_host", &FaultyDriver::limit_host, nb::arg("most"), nb::arg("tells"),
             "Let the host have no more than ``most`` bytes of page-locked memory; tell what is left if ``tells``.")
        .def("successes", &FaultyDriver::successes, nb::arg("entry"),
             "Return how many calls of ``entry`` have succeeded.");
    module.def("host_room", host_room, nb::arg("root"),
               "Return how many bytes of the host are left, by the files in ``root`` instead of those of the system.");
}

} // namespace tcuda
