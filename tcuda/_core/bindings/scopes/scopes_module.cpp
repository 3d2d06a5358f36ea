#include "bindings/scopes/scopes_module.hpp"

#include "bindings/scopes/device_scope.hpp"
#include "bindings/scopes/runtime_calls.hpp"
#include "bindings/scopes/stream_entry.hpp"
#include "bindings/scopes/stream_methods.hpp"
#include "bindings/scopes/stream_scope.hpp"
#include "bindings/scopes/thread_scopes.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// Called in a forked child.
void forget_scopes() {
    FoundCalls::forget();
    forget_entered();
}

} // namespace

void bind_scopes(nb::module_ &module) {
    if (!prepare_stream_entry() || !add_device_scope(module.ptr()) || !add_stream_scope(module.ptr()) ||
        !add_stream_methods(module.ptr()))
        nb::raise_python_error();
    module.def("find_calls_by", [](nb::object function) { find_calls_by(function.ptr()); }, nb::arg("function"));
    module.def("forget_scopes", forget_scopes);
}

} // namespace tcuda
