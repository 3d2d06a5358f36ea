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
    nb::class_<PhiloxState>(
        module, "PhiloxState",
        "The state of a generator: a seed, and an offset, which is the position in every subsequence.")
        .def(nb::init<std::uint64_t, std::uint64_t>(), nb::arg("seed"), nb::arg("offset") = 0)
        .def("read", &PhiloxState::read, "Return the seed and the offset.")
        .def("write", &PhiloxState::write, nb::arg("seed"), nb::arg("offset"), "Change the seed and the offset.")
        .def("move_to", &PhiloxState::move_to, nb::arg("offset"), "Change the offset only.")
        .def("advance", &PhiloxState::advance, nb::arg("increment"), R"(
        Move the offset, and return the seed and the offset before the move.

        The numbers between the two offsets belong to the caller.)")
        .def("store", store, nb::arg("target"),
             nb::sig("def store(self, target: numpy.typing.NDArray[numpy.uint8] | bytearray) -> None"),
             "Write the seed and the offset to the 16 bytes of ``target``.")
        .def("load", load, nb::arg("source").none(), nb::sig("def load(self, source: object) -> bool"), R"(
        Read the seed and the offset from an array of 16 bytes.

        Returns:
            False, with nothing changed, if ``source`` is no such array or is not the state of a generator.)");

    module.def(
        "philox_passes", passes, nb::arg("size"), nb::arg("itemsize"), nb::arg("lanes"), nb::arg("most_blocks"),
        nb::sig("def philox_passes(size: int, itemsize: int, lanes: int, most_blocks: int) -> list[tuple[int, int, "
                "int, int]]"),
        R"(
    Return the kernels that fill an array.

    Returns:
        A tuple for each kernel: the first element, the number of elements, the number of blocks, and by how much the
        offset moves. No kernel is launched for a tuple without elements, but the offset moves.)");

    nb::class_<CapturedState>(module, "CapturedState", R"(
    The state of a generator for the kernels of one graph, which read the state from ``words`` on the device.

    Args:
        state: The state of the generator.
        function: The ``CUfunction`` of ``put()`` in ``philox.cuh``.
        words: The address of two words of 64 bits.
        owner: The object that keeps the memory of the words.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def("__init__", make_captured_state, nb::arg("state"), nb::arg("function"), nb::arg("words"), nb::arg("owner"),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>())
        .def_prop_rw("position", &CapturedState::position, &CapturedState::move_to,
                     "How far the next draw of the graph is from the offset at the launch.")
        .def("prepare_node", &CapturedState::prepare_node, R"(
        Move the generator by what the graph draws, and let copies of the own node draw those numbers.

        Returns:
            A status. A failure leaves the generator unchanged.)")
        .def("prepare", &CapturedState::prepare, nb::arg("exec"), R"(
        Move the generator by what the graph draws, and let the next launch of ``exec`` draw those numbers.

        Returns:
            A status. A failure leaves the generator unchanged.)")
        .def("follow", &CapturedState::follow, nb::arg("before").none(), R"(
        Let :meth:`prepare` set the node of ``before``, because the executable graph was made of that graph.

        With None, :meth:`prepare` sets the own node again.)");

    nb::class_<FillKernel>(module, "FillKernel", R"(
    A kernel that fills an array with random numbers: ``function``, the ``CUfunction`` of a kernel in ``philox.cuh``.

    The methods return a status. A failure leaves the state unchanged. The status is 201 if the thread has no current
    context. The status of the ``fill`` methods is 900 if the stream is capturing.

    Raises:
        RuntimeError: The machine has no driver.)")
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
