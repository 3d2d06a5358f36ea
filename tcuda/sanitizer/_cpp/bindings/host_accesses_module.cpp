#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "bindings/python/interruption.hpp"
#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/system_calls/system_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *seen_function = nullptr; // kept until another function takes its place

void call_seen(std::uintptr_t address, bool write) {
    // A thread of a library, such as one of BLAS, must not wait for Python's lock: the thread that holds the lock may
    // wait for the thread of the library.
    if (PyGILState_GetThisThreadState() == nullptr)
        return;
    const nb::gil_scoped_acquire lock;
    const nb::error_scope before; // the access may be part of code that handles an error
    const nb::object function = nb::borrow(seen_function);
    try {
        const Interruption outer;
        function(address, write);
    } catch (const nb::python_error &error) {
        Interruption::keep(error);
    }
    Interruption::deliver();
}

void watch(const std::vector<std::tuple<std::uintptr_t, std::uintptr_t, bool>> &ranges, nb::object seen) {
    std::vector<WatchedRange> watched;
    for (const auto &[begin, end, reads] : ranges)
        watched.push_back({begin, end, reads});
    const nb::object before = nb::steal(std::exchange(seen_function, seen.release().ptr()));
    PageWatch::watch(std::move(watched), call_seen);
}

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
    module.def("watch_pages", watch, nb::arg("ranges"), nb::arg("seen"));
    module.def("end_watch_of_pages", PageWatch::end);
    module.def("watches_pages", PageWatch::supported);
    module.def("notice_system_calls", notice_system_calls);
    nb::class_<Pause>(module, "PauseOfWatch")
        .def(nb::init<>())
        .def("__enter__", &Pause::enter)
        .def("__exit__", &Pause::exit);
}

} // namespace tcuda
