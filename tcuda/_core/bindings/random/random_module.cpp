#include <nanobind/stl/pair.h>

#include <cstring>

#include "bindings/notes/work_notes.hpp"
#include "bindings/python/buffer.hpp"
#include "bindings/python/containers.hpp"
#include "random/captured_state.hpp"
#include "random/fill_kernel.hpp"
#include "random/philox_passes.hpp"
#include "random/philox_state.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The argument of a kernel that takes a number of any type as 64 bits.
std::uint64_t bits_of(double number) {
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

constexpr std::size_t state_size = 2 * sizeof(std::uint64_t);

void store(const PhiloxState &state, nb::handle target) {
    const Buffer bytes(target, PyBUF_WRITABLE);
    if (!bytes.has(state_size))
        throw nb::value_error("a state has 16 bytes, which lie side by side");
    const auto [seed, offset] = state.read();
    const std::uint64_t words[] = {seed, offset};
    std::memcpy(bytes.data(), words, state_size);
}

bool load(PhiloxState &state, nb::handle source) {
    // A state is an array of bytes: bytes and bytearray are refused, though they have buffers.
    if (PyBytes_Check(source.ptr()) || PyByteArray_Check(source.ptr()))
        return false;
    const Buffer bytes(source, PyBUF_FORMAT);
    std::uint64_t words[2];
    if (!bytes.has(state_size) || std::strcmp(bytes.format(), "B") != 0)
        return false;
    std::memcpy(words, bytes.data(), state_size);
    if (words[1] % philox_increment != 0)
        return false;
    state.write(words[0], words[1]);
    return true;
}

nb::list passes(std::uint64_t size, std::uint64_t itemsize, std::uint64_t lanes, std::uint64_t most_blocks) {
    nb::list found = new_list();
    PhiloxPasses(itemsize, lanes, most_blocks).each(size, [&](const PhiloxPass &pass) {
        found.append(nb::make_tuple(pass.start, pass.size, pass.blocks, pass.increment));
        return 0;
    });
    return found;
}

int fill(const FillKernel &kernel, PhiloxState &state, std::uintptr_t stream, std::uintptr_t out, std::uint64_t size,
         std::uint64_t first, std::uint64_t second) {
    WorkNotes notes;
    notes.writes(out, size * kernel.itemsize());
    return kernel.fill(state, stream, out, size, first, second);
}

int fill_reals(const FillKernel &kernel, PhiloxState &state, std::uintptr_t stream, std::uintptr_t out,
               std::uint64_t size, double first, double second) {
    return fill(kernel, state, stream, out, size, bits_of(first), bits_of(second));
}

int capture_reals(const FillKernel &kernel, CapturedState &state, std::uintptr_t stream, std::uintptr_t out,
                  std::uint64_t size, double first, double second) {
    return kernel.capture(state, stream, out, size, bits_of(first), bits_of(second));
}

// The binding keeps the owner of the memory of the words alive.
void make_captured_state(CapturedState *self, PhiloxState &state, std::uintptr_t function, std::uintptr_t words,
                         nb::handle) {
    new (self) CapturedState(state, function, words);
}

} // namespace

// Adds the states of generators, and the kernels that draw from them, to the module.
void bind_random(nb::module_ &module) {
    nb::class_<PhiloxState>(module, "PhiloxState")
        .def(nb::init<std::uint64_t, std::uint64_t>(), nb::arg("seed"), nb::arg("offset") = 0)
        .def("read", &PhiloxState::read)
        .def("write", &PhiloxState::write, nb::arg("seed"), nb::arg("offset"))
        .def("move_to", &PhiloxState::move_to, nb::arg("offset"))
        .def("advance", &PhiloxState::advance, nb::arg("increment"))
        .def("store", store, nb::arg("target"))
        .def("load", load, nb::arg("source").none());

    module.def("philox_passes", passes, nb::arg("size"), nb::arg("itemsize"), nb::arg("lanes"), nb::arg("most_blocks"));

    nb::class_<CapturedState>(module, "CapturedState")
        .def("__init__", make_captured_state, nb::arg("state"), nb::arg("function"), nb::arg("words"), nb::arg("owner"),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>())
        .def_prop_rw("position", &CapturedState::position, &CapturedState::move_to)
        .def("prepare", &CapturedState::prepare, nb::arg("exec"))
        .def("follow", &CapturedState::follow, nb::arg("before").none());

    nb::class_<FillKernel>(module, "FillKernel")
        .def(nb::init<std::uintptr_t, std::uint64_t, std::uint64_t, std::uint64_t>(), nb::arg("function"),
             nb::arg("itemsize"), nb::arg("lanes"), nb::arg("most_blocks"))
        .def("fill_integers", fill, nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"),
             nb::arg("low"), nb::arg("range"), nb::call_guard<nb::gil_scoped_release>())
        .def("capture_integers", &FillKernel::capture, nb::arg("state"), nb::arg("stream"), nb::arg("out"),
             nb::arg("size"), nb::arg("low"), nb::arg("range"))
        .def("fill_reals", fill_reals, nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"),
             nb::arg("first"), nb::arg("second"), nb::call_guard<nb::gil_scoped_release>())
        .def("capture_reals", capture_reals, nb::arg("state"), nb::arg("stream"), nb::arg("out"), nb::arg("size"),
             nb::arg("first"), nb::arg("second"));
}

} // namespace tcuda
