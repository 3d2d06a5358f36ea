// The Python module of the core. Each part of the core has a function that adds its classes, and so has each wing. The
// file tcuda/_core/__init__.pyi has the types.
#include <nanobind/nanobind.h>

#include <cstring>
#include <exception>
#include <new>

#include "bindings/memory/owned_memory.hpp"
#include "bindings/memory/page_locked_arrays.hpp"
#include "bindings/memory/page_locked_memory.hpp"

namespace tcuda {

// Each function is in the source file of its name.
void bind_callables(nanobind::module_ &);
void bind_driver(nanobind::module_ &);
void bind_graphs(nanobind::module_ &);
void bind_kernels(nanobind::module_ &);
void bind_ledger_arguments(nanobind::module_ &);
void bind_ledger(nanobind::module_ &);
void bind_memory_scopes(nanobind::module_ &);
void bind_random(nanobind::module_ &);
void bind_scopes(nanobind::module_ &);
void bind_stacks(nanobind::module_ &);
void bind_transfers(nanobind::module_ &);
bool add_event_finalizer(PyObject *);

#ifdef TCUDA_WINGS
void bind_emulation(nanobind::module_ &);
void bind_sanitizer(nanobind::module_ &);
#endif

#ifdef TCUDA_TESTS
void bind_driver_for_tests(nanobind::module_ &);
void bind_kernels_for_tests(nanobind::module_ &);
void bind_stacks_for_tests(nanobind::module_ &);
void bind_transfers_for_tests(nanobind::module_ &);
#ifdef TCUDA_WINGS
void bind_sanitizer_for_tests(nanobind::module_ &);
#endif
#endif

namespace {

// nanobind would only say "std::bad_alloc".
void translate_lack_of_memory(const std::exception_ptr &error, void *) {
    try {
        std::rethrow_exception(error);
    } catch (const std::bad_alloc &lack) {
        const bool says_more = std::strcmp(lack.what(), std::bad_alloc().what()) != 0;
        PyErr_SetString(PyExc_MemoryError, says_more
                                               ? lack.what()
                                               : "The system has no memory of the host left for this process. Free "
                                                 "memory, or raise the limit of the process (ulimit -v).");
    }
}

} // namespace
} // namespace tcuda

NB_MODULE(_core, module) {
    // Devices and arrays may live as long as the process: an object that is alive at its end is no leak.
    nanobind::set_leak_warnings(false);
    nanobind::register_exception_translator(tcuda::translate_lack_of_memory);
    module.attr("version") = TCUDA_VERSION;

    tcuda::bind_driver(module);
    tcuda::bind_graphs(module);
    tcuda::bind_random(module);
    tcuda::bind_kernels(module);
    tcuda::bind_transfers(module);
    tcuda::bind_ledger_arguments(module);
    tcuda::bind_ledger(module);
    tcuda::bind_memory_scopes(module);
    tcuda::bind_owned_memory(module);
    tcuda::bind_page_locked_memory(module);
    tcuda::bind_page_locked_arrays(module);
    tcuda::bind_stacks(module);
    tcuda::bind_callables(module);
    tcuda::bind_scopes(module);
#ifdef TCUDA_WINGS
    tcuda::bind_emulation(module);
    tcuda::bind_sanitizer(module);
    module.attr("has_wings") = true;
#else
    module.attr("has_wings") = false;
#endif
#ifdef TCUDA_TESTS
    // A module of this library, because the functions use the state of the core.
    nanobind::module_ for_tests = module.def_submodule("for_tests");
    tcuda::bind_driver_for_tests(for_tests);
    tcuda::bind_kernels_for_tests(for_tests);
    tcuda::bind_stacks_for_tests(for_tests);
    tcuda::bind_transfers_for_tests(for_tests);
#ifdef TCUDA_WINGS
    tcuda::bind_sanitizer_for_tests(for_tests);
#endif
#endif
    if (!tcuda::add_event_finalizer(module.ptr()))
        nanobind::raise_python_error();
}
