#include "emulation/_cpp/bindings/emulated_times.hpp"

#include <algorithm>
#include <climits>

namespace nb = nanobind;

namespace tcuda {
namespace {

long long sum(long long left, long long right) {
    long long result = 0;
    return __builtin_add_overflow(left, right, &result) ? LLONG_MAX : result;
}

// Takes a result for Python, whose error is raised if there is one.
long long raised_or(long long result) {
    if (result < 0)
        nb::raise_python_error();
    return result;
}

// Numbers that need more than 64 bits become the largest or the smallest number.
long long limited(nb::int_ number) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    return overflow > 0 ? LLONG_MAX : overflow < 0 ? LLONG_MIN : value;
}

} // namespace

long long KernelTime::of(long long bytes, long long operations, long long share) const {
    const long long alone = std::max(bytes / bytes_per_nanosecond, operations / operations_per_nanosecond);
    return launch + (share == multiprocessors ? alone : alone * multiprocessors / share);
}

EmulatedTimes::EmulatedTimes(EmulatedClock &clock, nb::sequence devices, long long call) : clock_(clock), call_(call) {
    for (nb::handle device : devices)
        devices_.push_back({device[0], device[1]});
}

long long EmulatedTimes::start(const EmulatedTimeline &timeline) const {
    const Device *const of = device(timeline.device);
    return of == nullptr ? -1 : start(timeline, *of);
}

long long EmulatedTimes::occupy(EmulatedTimeline &timeline, long long duration) {
    Device *const of = device(timeline.device);
    if (of == nullptr)
        return -1;
    const long long begin = start(timeline, *of);
    extend(timeline, *of, sum(begin, duration));
    if (duration > 0)
        note(*of, begin, timeline.ready);
    return timeline.ready;
}

long long EmulatedTimes::start(const EmulatedTimeline &timeline, const Device &device) const {
    clock_.now = sum(clock_.now, call_);
    long long start = std::max(clock_.now, timeline.ready);
    if (!timeline.blocking)
        return start;
    const EmulatedTimeline &default_stream = EmulatedTimeline::of(device.default_stream);
    if (&timeline != &default_stream)
        return std::max(start, default_stream.ready);
    return std::max(start, device.blocking_ready);
}

long long EmulatedTimes::extend(EmulatedTimeline &timeline, long long time) {
    Device *const of = device(timeline.device);
    if (of == nullptr)
        return -1;
    extend(timeline, *of, time);
    return timeline.ready;
}

void EmulatedTimes::extend(EmulatedTimeline &timeline, Device &device, long long time) {
    timeline.ready = std::max(timeline.ready, time);
    device.ready = std::max(device.ready, timeline.ready);
    if (timeline.blocking)
        device.blocking_ready = std::max(device.blocking_ready, timeline.ready);
}

bool EmulatedTimes::note(int device, long long start, long long end) {
    const Device *const of = this->device(device);
    if (of != nullptr)
        note(*of, start, end);
    return of != nullptr;
}

void EmulatedTimes::note(const Device &device, long long start, long long end) const {
    nb::inst_ptr<EmulatedActivity>(device.activity)->add(start, end, clock_.now);
}

long long EmulatedTimes::ready(int device) const {
    const Device *const of = this->device(device);
    return of == nullptr ? -1 : of->ready;
}

PyObject *EmulatedTimes::default_stream(int device) const {
    const bool exists = 0 <= device && static_cast<std::size_t>(device) < devices_.size();
    return exists ? devices_[static_cast<std::size_t>(device)].default_stream.ptr() : nullptr;
}

EmulatedTimes::Device *EmulatedTimes::device(int index) {
    if (0 <= index && static_cast<std::size_t>(index) < devices_.size())
        return &devices_[static_cast<std::size_t>(index)];
    PyErr_SetString(PyExc_IndexError, "the device of a stream does not exist");
    return nullptr;
}

const EmulatedTimes::Device *EmulatedTimes::device(int index) const {
    return const_cast<EmulatedTimes *>(this)->device(index);
}

void bind_emulated_times(nb::module_ &module) {
    nb::class_<KernelTime>(module, "KernelTime", R"(
    The formula for the time of a kernel.

    Args:
        launch: The nanoseconds of a kernel without work.
        bytes_per_nanosecond: The bytes that a kernel moves in a nanosecond.
        operations_per_nanosecond: The floating-point operations that a kernel does in a nanosecond.
        multiprocessors: The multiprocessors of a device; a kernel on a share of them takes longer.)")
        .def(
            "__init__",
            [](KernelTime *self, long long launch, long long bytes_per_nanosecond, long long operations_per_nanosecond,
               long long multiprocessors) {
                new (self) KernelTime{launch, bytes_per_nanosecond, operations_per_nanosecond, multiprocessors};
            },
            nb::arg("launch"), nb::arg("bytes_per_nanosecond"), nb::arg("operations_per_nanosecond"),
            nb::arg("multiprocessors"))
        .def(
            "__call__",
            [](const KernelTime &self, nb::int_ nbytes, nb::int_ flops, int share) {
                return self.of(limited(nbytes), limited(flops), share == 0 ? self.multiprocessors : share);
            },
            nb::arg("nbytes"), nb::arg("flops") = 0, nb::arg("multiprocessors") = 0, R"(
        Return the nanoseconds of a kernel that moves ``nbytes``, and does ``flops`` floating-point operations.

        Args:
            nbytes: The bytes.
            flops: The operations.
            multiprocessors: The number of multiprocessors that the kernel runs on; all of them if 0.)");
    nb::class_<EmulatedClock>(module, "EmulatedClock", R"(
    The base of the clock of emulated devices.

    Args:
        lock: A lock of Python.

    Attributes:
        _lock: The lock.
        _now: The time in nanoseconds. A time after the year 292 becomes that year.)")
        .def(nb::init<nb::object>(), nb::arg("lock"), nb::sig("def __init__(self, lock: Any) -> None"))
        .def_ro("_lock", &EmulatedClock::lock, nb::sig("def _lock(self) -> Any"))
        .def_prop_rw(
            "_now", [](const EmulatedClock &self) { return self.now; },
            [](EmulatedClock &self, nb::int_ time) { self.now = limited(time); });
    nb::class_<EmulatedTimeline>(module, "EmulatedTimeline", R"(
    The base of the streams of emulated devices.

    Attributes:
        ready: The time, in nanoseconds, at which the work of the stream is complete. A time after the year 292 becomes
            that year.
        device: The index of the device.
        multiprocessors: The number of multiprocessors that the kernels of the stream run on.
        blocking: Whether the stream and the default stream of its device wait for each other.)")
        .def(nb::init<>())
        .def_prop_ro("ready", [](const EmulatedTimeline &self) { return self.ready; })
        .def_rw("device", &EmulatedTimeline::device)
        .def_rw("multiprocessors", &EmulatedTimeline::multiprocessors)
        .def_rw("blocking", &EmulatedTimeline::blocking);
    nb::class_<EmulatedTimes>(module, "EmulatedTimes", R"(
    Moves the clock and the streams of emulated devices. The caller holds the lock of the clock.

    Args:
        clock: The clock.
        devices: For each device the default stream and the activity.
        call: The time of the host that each operation takes.)")
        .def(nb::init<EmulatedClock &, nb::sequence, long long>(), nb::arg("clock"), nb::arg("devices"),
             nb::arg("call"), nb::keep_alive<1, 2>(),
             nb::sig("def __init__(self, clock: EmulatedClock, devices: Sequence[tuple[EmulatedTimeline, "
                     "EmulatedActivity]], call: int) -> None"))
        .def(
            "start",
            [](const EmulatedTimes &self, const EmulatedTimeline &timeline) { return raised_or(self.start(timeline)); },
            nb::arg("timeline"),
            "Return the earliest start of an operation that is added to ``timeline`` now; the call takes host time.")
        .def(
            "occupy",
            [](EmulatedTimes &self, EmulatedTimeline &timeline, long long duration) {
                return raised_or(self.occupy(timeline, duration));
            },
            nb::arg("timeline"), nb::arg("duration"), R"(
        Let ``timeline`` be busy for ``duration`` nanoseconds as soon as possible, and return the time of the end.)")
        .def(
            "extend",
            [](EmulatedTimes &self, EmulatedTimeline &timeline, nb::int_ time) {
                return raised_or(self.extend(timeline, limited(time)));
            },
            nb::arg("timeline"), nb::arg("time"), R"(
        Let ``timeline`` be busy at least until ``time``, and return the time until which it is busy.)")
        .def(
            "note",
            [](EmulatedTimes &self, int device, nb::int_ start, nb::int_ end) {
                if (!self.note(device, limited(start), limited(end)))
                    nb::raise_python_error();
            },
            nb::arg("device"), nb::arg("start"), nb::arg("end"),
            "Note that ``device`` works from ``start`` to ``end``.")
        .def(
            "ready", [](const EmulatedTimes &self, int device) { return raised_or(self.ready(device)); },
            nb::arg("device"),
            "Return the time at which all work is complete that streams of ``device`` were given so far.");
}

} // namespace tcuda
