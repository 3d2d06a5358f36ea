// The Python module of the core. Each part of the core has a function that adds its classes. The file tcuda/_core.pyi
// has the types.
#include <nanobind/nanobind.h>

#include "bindings/callables_module.hpp"
#include "bindings/driver_module.hpp"
#include "bindings/event_finalizer.hpp"
#include "bindings/graphs_module.hpp"
#include "bindings/host_arrays.hpp"
#include "bindings/host_creation.hpp"
#include "bindings/host_kernels_module.hpp"
#include "bindings/host_operation.hpp"
#include "bindings/host_pages_module.hpp"
#include "bindings/host_times.hpp"
#include "bindings/host_work.hpp"
#include "bindings/kernel_table_module.hpp"
#include "bindings/kernels_module.hpp"
#include "bindings/ledger_arguments_module.hpp"
#include "bindings/ledger_module.hpp"
#include "bindings/library_calls_module.hpp"
#include "bindings/notes_module.hpp"
#include "bindings/owned_memory.hpp"
#include "bindings/page_locked_arrays.hpp"
#include "bindings/page_locked_memory.hpp"
#include "bindings/quiet_calls.hpp"
#include "bindings/races_module.hpp"
#include "bindings/random_module.hpp"
#include "bindings/kernel_uses_module.hpp"
#include "bindings/scopes_module.hpp"
#include "bindings/stacks_module.hpp"
#include "bindings/transfers_module.hpp"
#include "bindings/watch_module.hpp"

NB_MODULE(_core, module) {
    // Devices and arrays may live as long as the process: an object that is alive at its end is no leak.
    nanobind::set_leak_warnings(false);
    module.attr("version") = TCUDA_VERSION;

    tcuda::bind_driver(module);
    tcuda::bind_graphs(module);
    tcuda::bind_host_kernels(module);
    tcuda::bind_host_pages(module);
    tcuda::bind_random(module);
    tcuda::bind_kernels(module);
    tcuda::bind_transfers(module);
    tcuda::bind_ledger_arguments(module);
    tcuda::bind_ledger(module);
    tcuda::bind_owned_memory(module);
    tcuda::bind_page_locked_memory(module);
    tcuda::bind_page_locked_arrays(module);
    tcuda::bind_host_arrays(module);
    tcuda::bind_host_times(module);
    tcuda::bind_host_work(module);
    tcuda::bind_quiet_calls(module);
    tcuda::bind_host_operation(module);
    tcuda::bind_host_creation(module);
    tcuda::bind_stacks(module);
    tcuda::bind_races(module);
    tcuda::bind_watch(module);
    tcuda::bind_notes(module);
    tcuda::bind_kernel_uses(module);
    tcuda::bind_library_calls(module);
    tcuda::bind_kernel_table(module);
    tcuda::bind_callables(module);
    tcuda::bind_scopes(module);
    if (!tcuda::add_event_finalizer(module.ptr()))
        nanobind::raise_python_error();
}
