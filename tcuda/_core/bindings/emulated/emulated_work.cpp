#include "bindings/emulated/emulated_work.hpp"

#include <algorithm>

#include "bindings/python/interned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/python/raised.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

PyObject *device_name = nullptr, *streams_name = nullptr, *ptr_name = nullptr, *dict_name = nullptr;

} // namespace

void EmulatedWork::use(nb::object times, nb::object acquire, nb::object release, nb::object thread, nb::object streams,
                   nb::object default_stream, nb::dict created, nb::tuple obstacles, long long launch,
                   long long bytes_per_nanosecond, long long operations_per_nanosecond, long long multiprocessors) {
    static unsigned uses = 0;
    locals_name_ = nb::steal(PyUnicode_FromFormat("tcuda.locals.%u", ++uses));
    if (!locals_name_.is_valid())
        nb::raise_python_error();
    times_ = &nb::cast<const EmulatedTimes &>(times);
    times_object_ = std::move(times);
    acquire_ = std::move(acquire);
    release_ = std::move(release);
    thread_ = std::move(thread);
    streams_ = std::move(streams);
    default_stream_ = std::move(default_stream);
    created_ = std::move(created);
    obstacles_ = std::move(obstacles);
    launch_ = launch;
    bytes_per_nanosecond_ = bytes_per_nanosecond;
    operations_per_nanosecond_ = operations_per_nanosecond;
    multiprocessors_ = multiprocessors;
}

bool EmulatedWork::begin(Begun *begun) const {
    if (times_ == nullptr || has_obstacle())
        return false;
    PyObject *const locals = this->locals();
    if (locals == nullptr)
        return false;
    PyObject *const device = PyDict_GetItemWithError(PyTuple_GetItem(locals, 0), device_name);
    if (device == nullptr && PyErr_Occurred())
        return false;
    begun->device = device == nullptr ? 0 : static_cast<int>(PyLong_AsLongLong(device)); // a new thread has device 0
    return begun->device >= 0 && find_stream(begun, PyTuple_GetItem(locals, 1));
}

bool EmulatedWork::end(PyObject *timeline, long long bytes, long long operations) const {
    const long long share = times_ == nullptr ? 0 : times_->multiprocessors_of(timeline);
    if (share <= 0 || !done(call(acquire_.ptr())))
        return false;
    const long long alone = std::max(bytes / bytes_per_nanosecond_, operations / operations_per_nanosecond_);
    const long long busy = share == multiprocessors_ ? alone : alone * multiprocessors_ / share;
    const bool occupied = times_->occupy(timeline, launch_ + busy) >= 0;
    PyObject *const error = occupied ? nullptr : taken_exception();
    const bool released = done(call(release_.ptr()));
    if (error != nullptr)
        set_exception(error);
    return occupied && released;
}

// The dictionaries of `thread_` and `streams_` in this thread, as a pair: a borrowed reference. Null if there is none,
// or if a Python error is set. Python takes 40 ns to find a dictionary, so the thread keeps the pair beside them. The
// end of the thread drops all of them at once, and finalizers that run later in that thread find new ones.
PyObject *EmulatedWork::locals() const {
    PyObject *const of_all = PyThreadState_GetDict();
    if (of_all == nullptr)
        return nullptr;
    PyObject *const known = PyDict_GetItemWithError(of_all, locals_name_.ptr());
    if (known != nullptr || PyErr_Occurred())
        return known;
    const Owned of_thread(PyObject_GetAttr(thread_.ptr(), dict_name));
    const Owned of_streams(of_thread ? PyObject_GetAttr(streams_.ptr(), dict_name) : nullptr);
    const Owned pair(of_streams ? PyTuple_Pack(2, of_thread.get(), of_streams.get()) : nullptr);
    return pair && PyDict_SetItem(of_all, locals_name_.ptr(), pair.get()) == 0 ? pair.get() : nullptr;
}

bool EmulatedWork::has_obstacle() const {
    const Py_ssize_t count = PyTuple_Size(obstacles_.ptr());
    for (Py_ssize_t place = 0; place < count; ++place)
        if (PyList_Size(PyTuple_GetItem(obstacles_.ptr(), place)) != 0)
            return true;
    return false;
}

// Takes the stream only if it exists on the current device: Python raises the errors for other streams.
bool EmulatedWork::find_stream(Begun *begun, PyObject *streams) const {
    PyObject *const pair = PyDict_GetItemWithError(streams, streams_name);
    PyObject *const current = pair == nullptr ? nullptr : PyTuple_GetItem(pair, 0);
    PyObject *const stream = current == nullptr ? nullptr : PyTuple_GetItem(current, begun->device);
    if (stream == nullptr)
        return false;
    PyObject *timeline = nullptr;
    if (stream == default_stream_.ptr()) {
        timeline = times_->default_stream(begun->device);
    } else {
        const Owned handle(PyObject_GetAttr(stream, ptr_name));
        timeline = handle ? PyDict_GetItemWithError(created_.ptr(), handle.get()) : nullptr;
        if (timeline == nullptr || times_->device_of(timeline) != begun->device)
            return false;
        begun->stream = static_cast<Stream>(PyLong_AsLongLong(handle.get()));
    }
    Py_XINCREF(timeline);
    begun->timeline.set(timeline);
    return timeline != nullptr && !PyErr_Occurred();
}

void bind_emulated_work(nb::module_ &module) {
    device_name = interned("device").release().ptr();
    streams_name = interned("streams").release().ptr();
    ptr_name = interned("ptr").release().ptr();
    dict_name = interned("__dict__").release().ptr();
    nb::class_<EmulatedWork>(module, "EmulatedWork")
        .def(nb::init<>())
        .def("use", &EmulatedWork::use, nb::arg("times"), nb::arg("acquire"), nb::arg("release"), nb::arg("thread"),
             nb::arg("streams"), nb::arg("default_stream"), nb::arg("created"), nb::arg("obstacles"), nb::arg("launch"),
             nb::arg("bytes_per_nanosecond"), nb::arg("operations_per_nanosecond"), nb::arg("multiprocessors"))
        .def("forget", &EmulatedWork::forget)
        .def("begin",
             [](const EmulatedWork &self) -> nb::object {
                 EmulatedWork::Begun begun;
                 if (self.begin(&begun))
                     return nb::steal(Py_BuildValue("(Oi)", begun.timeline.get(), begun.device));
                 if (PyErr_Occurred())
                     nb::raise_python_error();
                 return nb::none();
             })
        .def(
            "end",
            [](const EmulatedWork &self, nb::handle timeline, long long bytes, long long operations) {
                if (!self.end(timeline.ptr(), bytes, operations))
                    nb::raise_python_error();
            },
            nb::arg("timeline"), nb::arg("bytes"), nb::arg("operations") = 0);
}

} // namespace tcuda
