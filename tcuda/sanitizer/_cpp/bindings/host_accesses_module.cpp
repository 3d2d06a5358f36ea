#include <nanobind/nanobind.h>

#include <optional>

#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/system_calls/system_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The lock of Python is given back: the loader's lock is held by threads that load a module and wait for Python's lock.
void notice_system_calls() {
    const nb::gil_scoped_release released;
    system_calls::notice();
}

// The context manager during which no access is noticed.
class Pause {
public:
    void enter() { pause_.emplace(); }
    void exit(nb::args) { pause_.reset(); }

private:
    std::optional<PageWatch::Pause> pause_;
};

} // namespace

// Adds the watch of the host's memory to the module.
void bind_host_accesses(nb::module_ &module) {
    module.def("notice_system_calls", notice_system_calls, R"(
    Notice from now on the system calls that use watched memory, in the modules that are loaded now.

    Such a call is told as an access of the host, and does its work. The watch stays until the process ends.)");
    nb::class_<Pause>(module, "PauseOfWatch", "Context manager during which no access to the host's memory is noticed.")
        .def(nb::init<>())
        .def("__enter__", &Pause::enter)
        .def("__exit__", &Pause::exit, nb::sig("def __exit__(self, *error: object) -> None"));
}

} // namespace tcuda
