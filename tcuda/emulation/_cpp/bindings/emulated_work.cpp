#include "emulation/_cpp/bindings/emulated_work.hpp"

#include "bindings/python/interned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/python/raised.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *ptr_name = nullptr;

} // namespace

void EmulatedWork::use(nb::object times, nb::object thread, nb::dict created, nb::tuple obstacles,
                       const KernelTime &kernel) {
    times_ = &nb::cast<EmulatedTimes &>(times);
    thread_ = &nb::cast<const EmulatedThread &>(thread);
    times_object_ = std::move(times);
    thread_object_ = std::move(thread);
    created_ = std::move(created);
    obstacles_ = std::move(obstacles);
    kernel_ = kernel;
}

bool EmulatedWork::begin(Begun *begun) const {
    if (times_ == nullptr || has_obstacle())
        return false;
    const EmulatedThread::State *const state = thread_->state();
    if (state == nullptr)
        return false;
    begun->device = state->device;
    const nb::object stream = state->streams[static_cast<std::size_t>(begun->device)];
    return find_stream(begun, stream.ptr());
}

bool EmulatedWork::end(EmulatedTimeline &timeline, long long bytes, long long operations) const {
    if (times_ == nullptr || !done(call(times_->clock().acquire.ptr())))
        return false;
    const bool occupied = times_->occupy(timeline, kernel_.of(bytes, operations, timeline.multiprocessors)) >= 0;
    PyObject *const error = occupied ? nullptr : taken_exception();
    const bool released = done(call(times_->clock().release.ptr()));
    if (error != nullptr)
        set_exception(error);
    return occupied && released;
}

bool EmulatedWork::has_obstacle() const {
    const Py_ssize_t count = PyTuple_Size(obstacles_.ptr());
    for (Py_ssize_t place = 0; place < count; ++place)
        if (PyList_Size(PyTuple_GetItem(obstacles_.ptr(), place)) != 0)
            return true;
    return false;
}

// Takes the stream only if it exists on the current device: Python raises the errors for other streams.
bool EmulatedWork::find_stream(Begun *begun, PyObject *stream) const {
    const Owned handle(PyObject_GetAttr(stream, ptr_name));
    begun->stream = handle ? static_cast<Stream>(PyLong_AsLongLong(handle.get())) : 0;
    if (PyErr_Occurred())
        return false;
    PyObject *const timeline = begun->stream == 0 ? times_->default_stream(begun->device)
                                                  : PyDict_GetItemWithError(created_.ptr(), handle.get());
    if (timeline == nullptr || EmulatedTimeline::of(timeline).device != begun->device)
        return false;
    Py_INCREF(timeline);
    begun->timeline.set(timeline);
    return true;
}

void bind_emulated_work(nb::module_ &module) {
    ptr_name = interned("ptr").release().ptr();
    nb::class_<EmulatedWork>(
        module, "EmulatedWork",
        "Begins and ends work of emulated devices that is done in the call that launches the work.")
        .def(nb::init<>())
        .def("use", &EmulatedWork::use, nb::arg("times"), nb::arg("thread"), nb::arg("created"), nb::arg("obstacles"),
             nb::arg("kernel"),
             nb::sig("def use(self, times: EmulatedTimes, thread: EmulatedThread, created: dict[int, Any], obstacles: "
                     "tuple[list[Any], ...], kernel: KernelTime) -> None"),
             R"(
        Use a runtime.

        Args:
            times: Moves the clock of the runtime.
            thread: The current device and the current streams of the calling thread.
            created: The streams of the runtime by handle, except the default streams.
            obstacles: Lists that are empty while work is done at once.
            kernel: Gives the time of a kernel.)")
        .def("forget", &EmulatedWork::forget, "Forget the runtime, in a forked child.")
        .def(
            "begin",
            [](const EmulatedWork &self) -> nb::object {
                EmulatedWork::Begun begun;
                if (self.begin(&begun))
                    return nb::steal(Py_BuildValue("(Oi)", begun.timeline.get(), begun.device));
                if (PyErr_Occurred())
                    nb::raise_python_error();
                return nb::none();
            },
            nb::sig("def begin(self) -> tuple[Any, int] | None"), R"(
        Begin work on the current stream.

        Returns:
            The stream for :meth:`end`, and the current device. None if the work is not done at once, if somebody
            watches or traces the work, if the program has chosen an allocator, or if the current stream is not a stream
            of the current device.)")
        .def(
            "end",
            [](const EmulatedWork &self, EmulatedTimeline &timeline, long long bytes, long long operations) {
                if (!self.end(timeline, bytes, operations))
                    nb::raise_python_error();
            },
            nb::arg("timeline"), nb::arg("bytes"), nb::arg("operations") = 0,
            "End work that has moved ``bytes`` bytes, and has done ``operations`` floating-point operations.");
}

} // namespace tcuda
