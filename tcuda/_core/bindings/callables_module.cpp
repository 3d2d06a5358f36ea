#include <nanobind/nanobind.h>

#include "bindings/driver/current_device_call.hpp"
#include "bindings/kernels/elementwise_call.hpp"
#include "bindings/kernels/elementwise_state.hpp"
#include "bindings/memory/block_allocator.hpp"
#include "bindings/memory/page_locked_pointers.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/cleanup_on_error.hpp"
#include "bindings/python/forwarder.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/python/translated.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Takes over a new reference. Raises the Python error that is set if the reference is null.
nb::object checked(PyObject *made) {
    if (made == nullptr)
        nb::raise_python_error();
    return nb::steal(made);
}

// Calls `function`. No caller could handle its error, so the error is reported as that of a destructor. An interrupt of
// the user is no error of the function.
void call_reported(const nb::callable &function) {
    try {
        function();
    } catch (nb::python_error &error) {
        if (error.matches(PyExc_KeyboardInterrupt)) {
            Interruption::keep(error);
            Interruption::deliver();
        } else {
            error.discard_as_unraisable(function);
        }
    }
}

} // namespace

// Adds the functions that make callables without a Python frame to the module, such as translated.
void bind_callables(nb::module_ &module) {
    module.def(
        "block_allocator",
        [type = checked(make_block_allocator_type())](nb::object allocate, nb::object memory, nb::object size) {
            return checked(make_block_allocator(type.ptr(), allocate.ptr(), memory.ptr(), size.ptr()));
        },
        nb::arg("allocate"), nb::arg("memory"), nb::arg("size"));
    nb::class_<ElementwiseState>(module, "ElementwiseState")
        .def(nb::init<nb::tuple, nb::tuple, std::size_t>(), nb::arg("names"), nb::arg("defaults"), nb::arg("outputs"))
        .def("learn", &ElementwiseState::learn, nb::arg("arrays"), nb::arg("current_stream"), nb::arg("dtypes"),
             nb::arg("kinds"), nb::arg("result"), nb::arg("contiguous"), nb::arg("strided"), nb::arg("device"),
             nb::arg("owner"), nb::lock_self());
    module.def(
        "elementwise_call",
        [type = checked(make_elementwise_call_type())](nb::object fallback, const ElementwiseState &state) {
            return checked(make_elementwise_call(type.ptr(), fallback.ptr(), nb::find(state).ptr()));
        },
        nb::arg("fallback"), nb::arg("state"));
    module.def(
        "translated",
        [type = checked(make_translated_type())](nb::object function, nb::object failure, nb::object raise_instead) {
            return checked(make_translated(type.ptr(), function.ptr(), failure.ptr(), raise_instead.ptr()));
        },
        nb::arg("function"), nb::arg("failure"), nb::arg("raise_instead"));
    module.def(
        "current_device_call",
        [type = checked(make_current_device_call_type())](nb::object ask) {
            return checked(make_current_device_call(type.ptr(), ask.ptr()));
        },
        nb::arg("ask"));
    module.def(
        "page_locked_pointers",
        [type = checked(make_page_locked_pointers_type())](nb::handle_t<PythonLedger> ledger, nb::object pointer) {
            return checked(make_page_locked_pointers(type.ptr(), ledger.ptr(), pointer.ptr()));
        },
        nb::arg("ledger"), nb::arg("pointer"));
    module.def(
        "forwarder",
        [type = checked(make_forwarder_type())](nb::object target) {
            return checked(make_forwarder(type.ptr(), target.ptr()));
        },
        nb::arg("target"));
    const nb::object method = checked(make_cleanup_on_error_type());
    module.def(
        "cleanup_on_error",
        [method](nb::object function, nb::object mend) {
            return checked(make_cleanup_on_error(method.ptr(), function.ptr(), mend.ptr()));
        },
        nb::arg("function"), nb::arg("mend"));
    module.def(
        "finalizing", [method](nb::object function) { return checked(make_finalizing(method.ptr(), function.ptr())); },
        nb::arg("function"));
    module.def("call_reported", call_reported, nb::arg("function"));
}

} // namespace tcuda
