#include "emulation/_cpp/bindings/emulated_thread.hpp"

#include <algorithm>

namespace nb = nanobind;

namespace tcuda {
namespace {

constexpr const char *capsule_name = "tcuda.thread";

EmulatedThread::State *state_in(PyObject *capsule) {
    return static_cast<EmulatedThread::State *>(PyCapsule_GetPointer(capsule, capsule_name));
}

EmulatedThread::State &state_of(const EmulatedThread &thread) {
    EmulatedThread::State *const state = thread.state();
    if (state == nullptr)
        nb::raise_python_error();
    return *state;
}

nb::object new_key() {
    static unsigned keys = 0;
    const nb::object key = nb::steal(PyUnicode_FromFormat("tcuda.thread.%u", ++keys));
    if (!key.is_valid())
        nb::raise_python_error();
    return key;
}

} // namespace

EmulatedThread::EmulatedThread(std::size_t devices, nb::object default_stream)
    : devices_(devices), default_stream_(std::move(default_stream)), key_(new_key()) {}

EmulatedThread::State *EmulatedThread::state() const {
    PyObject *const of_all = PyThreadState_GetDict();
    PyObject *const known = of_all == nullptr ? nullptr : PyDict_GetItemWithError(of_all, key_.ptr());
    if (known != nullptr)
        return state_in(known);
    if (of_all == nullptr)
        PyErr_NoMemory();
    if (PyErr_Occurred())
        return nullptr;
    auto *const state = new State{0, {devices_, default_stream_}, {}};
    const nb::object capsule =
        nb::steal(PyCapsule_New(state, capsule_name, [](PyObject *owner) { delete state_in(owner); }));
    if (!capsule.is_valid())
        delete state;
    return capsule.is_valid() && PyDict_SetItem(of_all, key_.ptr(), capsule.ptr()) == 0 ? state : nullptr;
}

nb::object EmulatedThread::stream(int device) const {
    const State &state = state_of(*this);
    const auto place = static_cast<std::size_t>(device == -1 ? state.device : device);
    if (place >= devices_)
        throw nb::index_error("the device of the current stream does not exist");
    return state.streams[place];
}

void EmulatedThread::use(nb::object stream, bool entered) const {
    const int of_stream = nb::cast<int>(stream.attr("device_id"));
    State &state = state_of(*this);
    if (of_stream != -1 && of_stream != state.device) { // CuPy's error, because CUDA has no such rule
        PyErr_Format(PyExc_RuntimeError,
                     "The device that the stream is created on (%d) does not match with the current device (%d)",
                     of_stream, state.device);
        nb::raise_python_error();
    }
    if (entered)
        state.entered.emplace_back(state.device, stream);
    std::swap(state.streams[static_cast<std::size_t>(state.device)], stream); // the old stream may end after the change
}

void EmulatedThread::leave() const {
    State &state = state_of(*this);
    if (state.entered.empty())
        throw nb::index_error("no stream was entered in this thread that was not left");
    const auto last = std::move(state.entered.back());
    state.entered.pop_back();
    const auto before = std::find_if(state.entered.rbegin(), state.entered.rend(),
                                     [&](const auto &other) { return other.first == last.first; });
    nb::object stream = before == state.entered.rend() ? default_stream_ : before->second;
    std::swap(state.streams[static_cast<std::size_t>(last.first)], stream);
}

void bind_emulated_thread(nb::module_ &module) {
    nb::class_<EmulatedThread>(module, "EmulatedThread", R"(
    The current device and the current streams of the calling thread.

    Args:
        devices: The number of devices.
        default_stream: The current stream of each device at first.

    Attributes:
        device: The current device.)")
        .def(nb::init<std::size_t, nb::object>(), nb::arg("devices"), nb::arg("default_stream"))
        .def_prop_rw(
            "device", [](const EmulatedThread &self) { return state_of(self).device; },
            [](const EmulatedThread &self, int device) {
                EmulatedThread::State &state = state_of(self);
                if (device < 0 || static_cast<std::size_t>(device) >= state.streams.size())
                    throw nb::index_error("the current device does not exist");
                state.device = device;
            })
        .def("current_stream", &EmulatedThread::stream, nb::arg("device") = -1,
             nb::sig("def current_stream(self, device: int=-1) -> Any"),
             "Return the current stream of ``device`` (-1: the current device).")
        .def(
            "use_stream", [](const EmulatedThread &self, nb::object stream) { self.use(stream, false); },
            nb::sig("def use_stream(self, stream: Any, /) -> None"), R"(
        Make ``stream`` current.

        Raises:
            RuntimeError: ``stream`` is not on the current device.)")
        .def(
            "enter_stream", [](const EmulatedThread &self, nb::object stream) { self.use(stream, true); },
            nb::sig("def enter_stream(self, stream: Any, /) -> None"), R"(
        Make ``stream`` current until :meth:`exit_stream`. As in CuPy, :meth:`use_stream` changes nothing of that.

        Raises:
            RuntimeError: ``stream`` is not on the current device.)")
        .def("exit_stream", &EmulatedThread::leave, R"(
        Restore the stream that was entered on the same device before the last one.

        Raises:
            IndexError: Every stream that was entered has been left.)");
}

} // namespace tcuda
