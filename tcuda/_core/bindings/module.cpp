// The Python module of the core. Each part of the core has a function that adds its classes. The file
// tcuda/_core/__init__.pyi has the types.
#include <nanobind/nanobind.h>

#include "bindings/callables_module.hpp"
#include "bindings/driver/driver_module.hpp"
#include "bindings/driver/event_finalizer.hpp"
#include "bindings/emulated/emulated_arrays.hpp"
#include "bindings/emulated/emulated_creation.hpp"
#include "bindings/emulated/emulated_kernels_module.hpp"
#include "bindings/emulated/emulated_operation.hpp"
#include "bindings/emulated/emulated_times.hpp"
#include "bindings/emulated/emulated_work.hpp"
#include "bindings/emulated/quiet_calls.hpp"
#include "bindings/graphs/graphs_module.hpp"
#include "bindings/kernels/kernels_module.hpp"
#include "bindings/memory/ledger_arguments_module.hpp"
#include "bindings/memory/ledger_module.hpp"
#include "bindings/memory/owned_memory.hpp"
#include "bindings/memory/page_locked_arrays.hpp"
#include "bindings/memory/page_locked_memory.hpp"
#include "bindings/races/host_pages_module.hpp"
#include "bindings/races/kernel_table_module.hpp"
#include "bindings/races/kernel_uses_module.hpp"
#include "bindings/races/library_calls_module.hpp"
#include "bindings/races/notes_module.hpp"
#include "bindings/races/races_module.hpp"
#include "bindings/races/watch_module.hpp"
#include "bindings/random/random_module.hpp"
#include "bindings/scopes/scopes_module.hpp"
#include "bindings/threads/stacks_module.hpp"
#include "bindings/transfers/transfers_module.hpp"

NB_MODULE(_core, module) {
    // Devices and arrays may live as long as the process: an object that is alive at its end is no leak.
    nanobind::set_leak_warnings(false);
    module.attr("version") = TCUDA_VERSION;

    tcuda::bind_driver(module);
    tcuda::bind_graphs(module);
    tcuda::bind_emulated_kernels(module);
    tcuda::bind_host_pages(module);
    tcuda::bind_random(module);
    tcuda::bind_kernels(module);
    tcuda::bind_transfers(module);
    tcuda::bind_ledger_arguments(module);
    tcuda::bind_ledger(module);
    tcuda::bind_owned_memory(module);
    tcuda::bind_page_locked_memory(module);
    tcuda::bind_page_locked_arrays(module);
    tcuda::bind_emulated_arrays(module);
    tcuda::bind_emulated_times(module);
    tcuda::bind_emulated_work(module);
    tcuda::bind_quiet_calls(module);
    tcuda::bind_emulated_operation(module);
    tcuda::bind_emulated_creation(module);
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
