// The classes for work on the arrays of several devices.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

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

} // namespace

void bind_transfers(nb::module_ &module) {
    nb::class_<PythonTransfers>(module, "Transfers")
        .def("__init__", make_transfers, nb::arg("arrays"), nb::arg("type"), nb::arg("pointer"),
             nb::arg("current_stream"), nb::arg("captures"), nb::arg("scalar_type"), nb::arg("reach"), nb::arg("fail"),
             nb::arg("check"), nb::arg("load"), nb::keep_alive<1, 2>())
        .def("empty", &PythonTransfers::empty, nb::arg("shape"), nb::arg("dtype"), nb::arg("device"))
        .def("relay", &PythonTransfers::relay, nb::arg("arrays"), nb::arg("hops"))
        .def("copy_rows", &PythonTransfers::copy_rows, nb::arg("target"), nb::arg("target_pitch"), nb::arg("source"),
             nb::arg("source_pitch"), nb::arg("width"), nb::arg("rows"))
        .def("upload", &PythonTransfers::upload, nb::arg("targets"), nb::arg("addresses"), nb::arg("marks"))
        .def("pack", &PythonTransfers::pack, nb::arg("arrays"), nb::arg("device"))
        .def("views", &PythonTransfers::views, nb::arg("flat"), nb::arg("like"), nb::arg("offsets"))
        .def("add", &PythonTransfers::add, nb::arg("out"), nb::arg("inputs"), nb::kw_only(), nb::arg("release") = true);

    nb::class_<CallGroup>(module, "CallGroup")
        .def(nb::init<nb::object, nb::object>(), nb::arg("start"), nb::arg("end"))
        .def("run", &CallGroup::run, nb::arg("call"), nb::arg("columns"));

    module.attr("pack_capacities") = nb::make_tuple(small_capacity, large_capacity);
}

} // namespace tcuda
