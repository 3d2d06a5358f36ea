// The classes for work on the arrays of several devices.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>

#include "bindings/python/call_group.hpp"
#include "bindings/transfers/python_transfers.hpp"
#include "transfers/pack_tables.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

void make_transfers(PythonTransfers *self, const ArrayType &arrays, nb::type_object type, nb::type_object pointer,
                    nb::handle current_stream, nb::list captures, nb::object scalar_type, nb::object reach,
                    nb::object fail, nb::object check, nb::object load) {
    new (self)
        PythonTransfers(arrays, std::move(type), std::move(pointer), current_stream, std::move(captures),
                        {std::move(scalar_type), std::move(reach), std::move(fail), std::move(check), std::move(load)});
}

std::uintptr_t buffer_address(nb::handle object) {
    Py_buffer view;
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_ANY_CONTIGUOUS) != 0)
        nb::raise_python_error();
    const auto address = reinterpret_cast<std::uintptr_t>(view.buf);
    PyBuffer_Release(&view);
    return address;
}

} // namespace

void bind_transfers(nb::module_ &module) {
    nb::class_<PythonTransfers>(module, "Transfers", R"(
    Work on the arrays of several devices; :class:`tcuda._backend.Transfers` documents the methods.

    Args:
        arrays: The type of the arrays.
        type: The type that an array is an instance of.
        pointer: The type of ``array.data``.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
        captures: The captures in progress.
        scalar_type: A function that returns the scalar type of a dtype, or the dtype itself.
        reach: A function of a device and a peer, which lets the device use the memory of the peer if possible, and
            returns whether the device can use the memory.
        fail: A function of a status and the name of a call, which raises the error.
        check: A function that is called before each wait while captures are in progress, with the device and the stream
            that waits, and the device and the stream that is waited for. An exception prevents the wait.
        load: A function that returns the ``CUfunction`` of a kernel, or 0 if there is none. The arguments are a device,
            the kind of the kernel (a small table of arrays to pack, a large table, a sum), a dtype, and the number of
            inputs of a sum.

    Raises:
        RuntimeError: The machine has no driver.)")
        .def("__init__", make_transfers, nb::arg("arrays"), nb::arg("type"), nb::arg("pointer"),
             nb::arg("current_stream"), nb::arg("captures"), nb::arg("scalar_type"), nb::arg("reach"), nb::arg("fail"),
             nb::arg("check"), nb::arg("load"), nb::keep_alive<1, 2>(),
             nb::sig(
                 "def __init__(self, arrays: ArrayType, type: type[Any], pointer: type[Any], current_stream: object, "
                 "captures: list[Any], scalar_type: Callable[[Any], Any], reach: Callable[[int, int], bool], fail: "
                 "Callable[[int, str], NoReturn], check: Callable[[int, int, int, int], object], load: Callable[[int, "
                 "int, Any, int], int]) -> None"))
        .def("empty", &PythonTransfers::empty, nb::arg("shape"), nb::arg("dtype"), nb::arg("device"),
             nb::sig("def empty(self, shape: Sequence[int], dtype: Any, device: int) -> Any"))
        .def("relay", &PythonTransfers::relay, nb::arg("arrays"), nb::arg("hops"),
             nb::sig("def relay(self, arrays: Sequence[Any], hops: Sequence[tuple[int, int, int, int, int]]) -> None"))
        .def("copy_rows", &PythonTransfers::copy_rows, nb::arg("target"), nb::arg("target_pitch"), nb::arg("source"),
             nb::arg("source_pitch"), nb::arg("width"), nb::arg("rows"),
             nb::sig("def copy_rows(self, target: Any, target_pitch: int, source: Any, source_pitch: int, width: int, "
                     "rows: int) -> None"))
        .def("upload", &PythonTransfers::upload, nb::arg("targets"), nb::arg("addresses"),
             nb::sig("def upload(self, targets: Sequence[Any], addresses: Sequence[int]) -> None"))
        .def("pack", &PythonTransfers::pack, nb::arg("arrays"), nb::arg("device"), nb::arg("full"),
             nb::sig("def pack(self, arrays: Sequence[Any], device: int, full: int) -> tuple[Any, list[int]] | None"))
        .def("views", &PythonTransfers::views, nb::arg("flat"), nb::arg("like"), nb::arg("offsets"),
             nb::sig("def views(self, flat: Any, like: Sequence[Any], offsets: Sequence[int]) -> list[Any]"))
        .def("add", &PythonTransfers::add, nb::arg("out"), nb::arg("inputs"), nb::kw_only(), nb::arg("release") = true,
             nb::sig("def add(self, out: Any, inputs: Sequence[Any], *, release: bool=True) -> bool"));

    module.def("buffer_address", buffer_address, nb::arg("object"), nb::sig("def buffer_address(object: Any) -> int"),
               R"(
    Return the address of the bytes of an object that has a buffer without gaps, such as an array of NumPy.

    Raises:
        TypeError: The object has no buffer.
        ValueError: The buffer has gaps.)");

    nb::class_<CallGroup>(module, "CallGroup", R"(
    A group of calls, as NCCL has: a function starts the group, another function ends the group.

    Between the start and the end, the thread runs no Python code if the functions are written in C. So neither the
    garbage collector nor a signal handler runs while the group is open.

    Args:
        start: The function that starts the group.
        end: The function that ends the group, also after a call that fails.)")
        .def(nb::init<nb::object, nb::object>(), nb::arg("start"), nb::arg("end"),
             nb::sig("def __init__(self, start: Callable[[], object], end: Callable[[], object]) -> None"))
        .def("run", &CallGroup::run, nb::arg("call"), nb::arg("columns"),
             nb::sig("def run(self, call: Callable[..., object], columns: tuple[Any, ...]) -> None"), R"(
        Call ``call`` once for each item of the first of ``columns``, in one group.

        Args:
            call: The function.
            columns: The arguments. A tuple has an item for each call; any other object is the argument of all
                calls.)");

    module.attr("pack_capacities") = nb::make_tuple(small_capacity, large_capacity);
}

} // namespace tcuda
