#include "bindings/philox_module.hpp"

#include <cstring>

#include <nanobind/stl/pair.h>

#include "random/captured_state.hpp"
#include "random/fill_kernel.hpp"
#include "random/philox_state.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

std::uint64_t bits_of(double number) {
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// The bytes of an object, as long as this lives; none if it has no such bytes, or they do not lie side by side.
class Bytes {
public:
    Bytes(nb::handle object, int flags) : found_(PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) {
        if (found_)
            return;
        // Anything else has another cause, as what a signal handler raises.
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError) &&
            !PyErr_ExceptionMatches(PyExc_ValueError))
            nb::raise_python_error();
        PyErr_Clear();
    }
    ~Bytes() {
        if (found_)
            PyBuffer_Release(&view_);
    }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
    bool are(std::size_t size) const { return found_ && view_.len == static_cast<Py_ssize_t>(size); }
    void *data() const { return view_.buf; }
    const char *format() const { return view_.format == nullptr ? "B" : view_.format; }

private:
    Py_buffer view_;
    const bool found_;
};

constexpr std::size_t state_size = 2 * sizeof(std::uint64_t);

void store(const PhiloxState &state, nb::handle target) {
    const Bytes bytes(target, PyBUF_WRITABLE);
    if (!bytes.are(state_size))
        throw nb::value_error("a state has 16 bytes, which lie side by side");
    const auto [seed, offset] = state.read();
    const std::uint64_t words[] = {seed, offset};
    std::memcpy(bytes.data(), words, state_size);
}

bool load(PhiloxState &state, nb::handle source) {
    // Of what has a buffer, arrays of bytes alone are meant.
    if (PyBytes_Check(source.ptr()) || PyByteArray_Check(source.ptr()))
        return false;
    const Bytes bytes(source, PyBUF_FORMAT);
    std::uint64_t words[2];
    if (!bytes.are(state_size) || std::strcmp(bytes.format(), "B") != 0)
        return false;
    std::memcpy(words, bytes.data(), state_size);
    if (words[1] % philox_increment != 0)
        return false;
    state.write(words[0], words[1]);
    return true;
}

nb::list passes(std::uint64_t size, std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks) {
    nb::list found;
    PhiloxPasses(itemsize, lanes, most_blocks).each(size, [&](const PhiloxPass &pass) {
        found.append(nb::make_tuple(pass.start, pass.size, pass.blocks, pass.increment));
        return 0;
    });
    return found;
}

} // namespace

void bind_philox(nb::module_ &module) {
    nb::class_<PhiloxState>(module, "PhiloxState")
        .def(nb::init<std::uint64_t, std::uint64_t>(), nb::arg("seed"), nb::arg("offset") = 0)
        .def("read", &PhiloxState::read)
        .def("write", &PhiloxState::write, nb::arg("seed"), nb::arg("offset"))
        .def("move_to", &PhiloxState::move_to, nb::arg("offset"))
        .def("advance", &PhiloxState::advance, nb::arg("increment"))
        .def("store", &store, nb::arg("target"))
        .def("load", &load, nb::arg("source").none());

    module.def("philox_passes", &passes, nb::arg("size"), nb::arg("itemsize"), nb::arg("lanes"), nb::arg("most_blocks"));

    nb::class_<CapturedState>(module, "CapturedState")
        .def(
            "__init__",
            [](CapturedState *self, PhiloxState &state, std::uintptr_t function, std::uintptr_t words, nb::handle) {
                new (self) CapturedState(state, function, words);
            },
            nb::arg("state"), nb::arg("function"), nb::arg("words"), nb::arg("owner"), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 5>())
        .def("prepare", &CapturedState::prepare, nb::arg("exec"));

    nb::class_<FillKernel>(module, "FillKernel")
        .def(nb::init<std::uintptr_t, std::uint64_t, std::uint64_t, std::uint64_t>(), nb::arg("function"),
             nb::arg("itemsize"), nb::arg("lanes"), nb::arg("most_blocks"))
        .def("fill_integers", &FillKernel::fill, nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"),
             nb::arg("low"), nb::arg("range"), nb::call_guard<nb::gil_scoped_release>())
        .def("capture_integers", &FillKernel::capture, nb::arg("state"), nb::arg("stream"), nb::arg("out"),
             nb::arg("size"), nb::arg("low"), nb::arg("range"))
        .def(
            "capture_reals",
            [](const FillKernel &kernel, CapturedState &state, std::uintptr_t stream, std::uintptr_t out,
               std::uint64_t size, double first, double second) {
                return kernel.capture(state, stream, out, size, bits_of(first), bits_of(second));
            },
            nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"), nb::arg("first"), nb::arg("second"))
        .def(
            "fill_reals",
            [](const FillKernel &kernel, PhiloxState &state, std::uintptr_t stream, std::uintptr_t out,
               std::uint64_t size, double first, double second) {
                return kernel.fill(state, stream, out, size, bits_of(first), bits_of(second));
            },
            nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"), nb::arg("first"), nb::arg("second"),
            nb::call_guard<nb::gil_scoped_release>());
}

} // namespace tcuda
