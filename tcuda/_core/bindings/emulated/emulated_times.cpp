#include "bindings/emulated/emulated_times.hpp"

#include <algorithm>
#include <climits>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

long long sum(long long left, long long right) {
    long long result = 0;
    return __builtin_add_overflow(left, right, &result) ? LLONG_MAX : result;
}

// Returns -1 with a Python error set if that fails.
long long read(const Attribute &attribute, PyObject *object) {
    const Owned value(attribute.of(object));
    if (!value)
        return -1;
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.get(), &overflow);
    return overflow > 0 ? LLONG_MAX : number;
}

bool write(const Attribute &attribute, PyObject *object, long long value) {
    const Owned number(PyLong_FromLongLong(value));
    return number && attribute.set(object, number.get());
}

// Takes a result for Python, whose error is raised if there is one.
long long raised_or(long long result) {
    if (result < 0)
        nb::raise_python_error();
    return result;
}

} // namespace

EmulatedTimes::EmulatedTimes(nb::object clock, nb::object timeline, nb::sequence devices, long long call)
    : clock_(std::move(clock)), now_(nb::getattr(clock_.type(), "_now")), ready_(timeline.attr("ready")),
      blocking_(timeline.attr("blocking")), device_(timeline.attr("device")),
      multiprocessors_(timeline.attr("multiprocessors")), call_(call) {
    for (nb::handle device : devices)
        devices_.push_back({device[0], device[1], device[2]});
}

long long EmulatedTimes::start(PyObject *timeline) const {
    const Device *const of = device(timeline);
    return of == nullptr ? -1 : start(timeline, *of);
}

long long EmulatedTimes::occupy(PyObject *timeline, long long duration) const {
    const Device *const of = device(timeline);
    const long long begin = of == nullptr ? -1 : start(timeline, *of);
    if (begin < 0)
        return -1;
    const Owned end(PyLong_FromLongLong(sum(begin, duration)));
    if (!end || !ready_.set(timeline, end.get()) || (duration > 0 && !note(*of, begin, end.get())))
        return -1;
    return sum(begin, duration);
}

long long EmulatedTimes::start(PyObject *timeline, const Device &device) const {
    const long long now = read(now_, clock_.ptr());
    if (now < 0)
        return -1;
    long long start = sum(now, call_);
    if (!write(now_, clock_.ptr(), start) || !wait_for(timeline, &start))
        return -1;
    const Owned waits(blocking_.of(timeline));
    if (!waits || waits.get() != Py_True)
        return waits ? start : -1;
    if (timeline != device.default_stream.ptr())
        return wait_for(device.default_stream.ptr(), &start) ? start : -1;
    for (Py_ssize_t place = 0; place < PyList_Size(device.blocking.ptr()); ++place) {
        PyObject *const other = PyList_GetItem(device.blocking.ptr(), place);
        if (other == nullptr || !wait_for(other, &start))
            return -1;
    }
    return start;
}

int EmulatedTimes::device_of(PyObject *timeline) const { return static_cast<int>(read(device_, timeline)); }

long long EmulatedTimes::multiprocessors_of(PyObject *timeline) const { return read(multiprocessors_, timeline); }

PyObject *EmulatedTimes::default_stream(int device) const {
    const bool exists = 0 <= device && static_cast<std::size_t>(device) < devices_.size();
    return exists ? devices_[static_cast<std::size_t>(device)].default_stream.ptr() : nullptr;
}

const EmulatedTimes::Device *EmulatedTimes::device(PyObject *timeline) const {
    const int index = device_of(timeline);
    if (0 <= index && static_cast<std::size_t>(index) < devices_.size())
        return &devices_[static_cast<std::size_t>(index)];
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "the device of a stream does not exist");
    return nullptr;
}

bool EmulatedTimes::note(const Device &device, long long start, PyObject *end) const {
    const Owned begin(PyLong_FromLongLong(start));
    const Owned times(begin ? PyTuple_Pack(2, begin.get(), end) : nullptr);
    return times && done(call(device.note.ptr(), times.get()));
}

bool EmulatedTimes::wait_for(PyObject *timeline, long long *start) const {
    const long long ready = read(ready_, timeline);
    *start = std::max(*start, ready);
    return ready >= 0;
}

void bind_emulated_times(nb::module_ &module) {
    nb::class_<EmulatedTimes>(module, "EmulatedTimes")
        .def(nb::init<nb::object, nb::object, nb::sequence, long long>(), nb::arg("clock"), nb::arg("timeline"),
             nb::arg("devices"), nb::arg("call"))
        .def(
            "start",
            [](const EmulatedTimes &self, nb::handle timeline) { return raised_or(self.start(timeline.ptr())); },
            nb::arg("timeline"))
        .def(
            "occupy",
            [](const EmulatedTimes &self, nb::handle timeline, long long duration) {
                return raised_or(self.occupy(timeline.ptr(), duration));
            },
            nb::arg("timeline"), nb::arg("duration"));
}

} // namespace tcuda
