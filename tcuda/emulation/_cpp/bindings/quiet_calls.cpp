#include "emulation/_cpp/bindings/quiet_calls.hpp"

#include "bindings/python/checked.hpp"
#include "bindings/python/python_calls.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

#if PY_VERSION_HEX < 0x030C0000
// Until the end of the scope, the garbage collector does not run. The scope must not let other threads run.
class Uncollected {
public:
    Uncollected() : collects_(PyGC_Disable()) {}
    ~Uncollected() {
        if (collects_)
            PyGC_Enable();
    }
    Uncollected(const Uncollected &) = delete;
    Uncollected &operator=(const Uncollected &) = delete;

private:
    const int collects_;
};
#else
struct Uncollected {
    Uncollected() {} // the collector runs between two instructions of Python only
};
#endif

nb::object set_variable(nb::handle variable, nb::handle value) {
    const Owned set(PyObject_GetAttrString(variable.ptr(), "set"));
    const Uncollected uncollected;
    return checked(set ? call(set.get(), value.ptr()) : nullptr);
}

} // namespace

#if PY_VERSION_HEX < 0x030C0000
// Returns the context of the call, which is the current context then.
PyObject *QuietCalls::begin() const {
    const Uncollected uncollected;
    Owned copy(PyContext_CopyCurrent());
    if (!copy || PyContext_Enter(copy.get()) != 0)
        return nullptr;
    if (done(tcuda::call(silence_.ptr(), silent_.ptr())))
        return copy.release();
    PyObject *const error = taken_exception();
    end(copy.get());
    set_exception(error);
    return nullptr;
}

bool QuietCalls::end(PyObject *before) const { return PyContext_Exit(before) == 0; }
#else
PyObject *QuietCalls::begin() const { return tcuda::call(silence_.ptr(), silent_.ptr()); }

bool QuietCalls::end(PyObject *before) const { return done(tcuda::call(restore_.ptr(), before)); }
#endif

void bind_quiet_calls(nb::module_ &module) {
    nb::class_<QuietCalls>(module, "QuietCalls", R"(
    Calls functions of NumPy, which give no warnings of floating-point errors then.

    Args:
        silence: Called with ``silent`` before a function.
        silent: The argument of ``silence``.
        restore: Called after a function with the result of ``silence``.)")
        .def(nb::init<nb::object, nb::object, nb::object>(), nb::arg("silence"), nb::arg("silent"), nb::arg("restore"),
             nb::sig(
                 "def __init__(self, silence: Callable[[Any], Any], silent: Any, restore: Callable[[Any], object]) -> "
                 "None"))
        .def(
            "__call__",
            [](const QuietCalls &self, nb::callable function, nb::args args, nb::kwargs kwargs) {
                return checked(self.call([&] { return PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr()); }));
            },
            nb::sig("def __call__(self, function: Callable[..., _T], /, *args: Any, **kwargs: Any) -> _T"),
            "Return what ``function`` returns.");
    module.def("set_variable", set_variable, nb::arg("variable"), nb::arg("value"),
               nb::sig("def set_variable(variable: ContextVar[_T], value: _T) -> Token[_T]"),
               "Set a context variable. Meanwhile the garbage collector does not run.");
}

} // namespace tcuda
