#include <nanobind/nanobind.h>

#include "bindings/driver/current_device_call.hpp"
#include "bindings/kernels/elementwise_call.hpp"
#include "bindings/kernels/elementwise_state.hpp"
#include "bindings/memory/block_allocator.hpp"
#include "bindings/memory/page_locked_pointers.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/checked.hpp"
#include "bindings/python/cleanup_on_error.hpp"
#include "bindings/python/forwarder.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/python/translated.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

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
        nb::arg("allocate"), nb::arg("memory"), nb::arg("size"),
        nb::sig("def block_allocator(allocate: Callable[..., Any], memory: object, size: object) -> Callable[..., "
                "Any]"),
        R"(
    Return an allocator for CuPy that sets the size of the memory to the size of its block.

    Args:
        allocate: ``CFunctionAllocator.malloc`` for :meth:`Ledger.cupy_functions`.
        memory: The descriptor of the attribute ``mem`` of the pointer that ``allocate`` returns.
        size: The descriptor of the attribute ``size`` of that memory.)");
    nb::class_<ElementwiseState>(module, "ElementwiseState", R"(
    The kernels that a jiterator function has learned from the calls that Python computed.

    Args:
        names: The names of the keyword arguments.
        defaults: The defaults of the keyword arguments, as Python scalars.
        outputs: The number of outputs.)")
        .def(nb::init<nb::tuple, nb::tuple, std::size_t>(), nb::arg("names"), nb::arg("defaults"), nb::arg("outputs"),
             nb::sig("def __init__(self, names: tuple[str, ...], defaults: tuple[complex, ...], outputs: int) -> None"))
        .def(
            "learn", &ElementwiseState::learn, nb::arg("arrays"), nb::arg("current_stream"), nb::arg("dtypes"),
            nb::arg("kinds"), nb::arg("result"), nb::arg("contiguous"), nb::arg("strided"), nb::arg("device"),
            nb::arg("owner"), nb::lock_self(),
            nb::sig("def learn(self, arrays: ArrayType, current_stream: object, dtypes: tuple[Any, ...], kinds: "
                    "tuple[int, ...], result: Any, contiguous: int, strided: int, device: int, owner: object) -> None"),
            R"(
        Let the core compute calls with inputs of these dtypes.

        Args:
            arrays: The type of the inputs and the outputs.
            current_stream: The capsule with CuPy's function for the current stream.
            dtypes: The dtypes of the inputs, which are compared by identity.
            kinds: The kinds of the keyword arguments.
            result: The dtype of the outputs, or another object that stands for this dtype in the call of the type.
            contiguous: The ``CUfunction`` for elements side by side.
            strided: The ``CUfunction`` for inputs with strides.
            device: The index of the device of the functions, which is current.
            owner: An object that keeps the functions loaded.)");
    module.def(
        "elementwise_call",
        [type = checked(make_elementwise_call_type())](nb::object fallback, const ElementwiseState &state) {
            return checked(make_elementwise_call(type.ptr(), fallback.ptr(), nb::find(state).ptr()));
        },
        nb::arg("fallback"), nb::arg("state"),
        nb::sig("def elementwise_call(fallback: Callable[..., Any], state: ElementwiseState) -> Callable[..., Any]"),
        R"(
    Return a callable that computes the calls that ``state`` has learned, and leaves others to ``fallback``.

    The callable has the attributes of ``fallback``, and adds no Python frame.)");
    module.def(
        "translated",
        [type = checked(make_translated_type())](nb::object function, nb::object failure, nb::object raise_instead) {
            return checked(make_translated(type.ptr(), function.ptr(), failure.ptr(), raise_instead.ptr()));
        },
        nb::arg("function"), nb::arg("failure"), nb::arg("raise_instead"),
        nb::sig("def translated(function: Callable[..., Any], failure: type[BaseException] | "
                "tuple[type[BaseException], ...], raise_instead: Callable[..., NoReturn]) -> Callable[..., Any]"),
        R"(
    Return a callable that calls ``function``, and calls ``raise_instead(error, *args)`` if that raises ``failure``.

    The callable adds no Python frame.)");
    module.def(
        "current_device_call",
        [type = checked(make_current_device_call_type())](nb::object ask) {
            return checked(make_current_device_call(type.ptr(), ask.ptr()));
        },
        nb::arg("ask"), nb::sig("def current_device_call(ask: Callable[[], int]) -> Callable[[], int]"), R"(
    Return a callable that returns the index of the current device, without a Python frame.

    The driver knows the device if the thread has a context. Otherwise the callable calls ``ask``, a function of the
    CUDA runtime, once in each thread. If the driver was in use before a fork, the child always calls ``ask``.)");
    module.def(
        "page_locked_pointers",
        [type = checked(make_page_locked_pointers_type())](nb::handle_t<PythonLedger> ledger, nb::object pointer) {
            return checked(make_page_locked_pointers(type.ptr(), ledger.ptr(), pointer.ptr()));
        },
        nb::arg("ledger"), nb::arg("pointer"),
        nb::sig("def page_locked_pointers(ledger: Ledger, pointer: Callable[[PageLockedMemory, int], Any]) -> "
                "Callable[[int], Any]"),
        "Return an allocator for CuPy, which takes a number of bytes and returns ``pointer(memory, 0)``.");
    module.def(
        "forwarder",
        [type = checked(make_forwarder_type())](nb::object target) {
            return checked(make_forwarder(type.ptr(), target.ptr()));
        },
        nb::arg("target"), nb::sig("def forwarder(target: Callable[..., Any]) -> Forwarder"),
        "Return a function that calls its attribute ``target``, which can be replaced.");
    const nb::object method = checked(make_cleanup_on_error_type());
    module.def(
        "cleanup_on_error",
        [method](nb::object function, nb::object mend) {
            return checked(make_cleanup_on_error(method.ptr(), function.ptr(), mend.ptr()));
        },
        nb::arg("function"), nb::arg("mend"),
        nb::sig("def cleanup_on_error(function: _F, mend: Callable[[Any], object]) -> _F"), R"(
    Return a method that calls ``function`` and, if that raises, calls ``mend(self)`` until ``mend`` returns.

    No signal handler can run between the two calls, so ``mend`` always follows a ``function`` that fails.)");
    module.def(
        "finalizing", [method](nb::object function) { return checked(make_finalizing(method.ptr(), function.ptr())); },
        nb::arg("function"), nb::sig("def finalizing(function: _F) -> _F"), R"(
    Return a ``__del__`` that calls ``function``.

    If a signal handler raises ``KeyboardInterrupt`` or ``SystemExit`` in the middle, the code that runs next in this
    thread raises the exception. Python would drop the exception in a destructor.)");
    module.def("call_reported", call_reported, nb::arg("function"),
               nb::sig("def call_reported(function: Callable[[], object]) -> None"), R"(
    Call ``function``, and report an error as Python reports an error in a destructor.

    ``KeyboardInterrupt`` is raised in the code that runs next in this thread.)");
}

} // namespace tcuda
