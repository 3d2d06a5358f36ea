// The classes of the search for races in the Python module of the core.
#include <nanobind/nanobind.h>

namespace tcuda {

// Each function is in the source file of its name.
void bind_host_accesses(nanobind::module_ &);
void bind_kernel_table(nanobind::module_ &);
void bind_kernel_uses(nanobind::module_ &);
void bind_library_calls(nanobind::module_ &);
void bind_mpi(nanobind::module_ &);
void bind_notes(nanobind::module_ &);
void bind_races(nanobind::module_ &);
void bind_watch(nanobind::module_ &);

// Adds the classes of the search for races to the module, which has those of the core already.
void bind_sanitizer(nanobind::module_ &module) {
    bind_host_accesses(module);
    bind_races(module);
    bind_watch(module);
    bind_mpi(module);
    bind_notes(module);
    bind_kernel_uses(module);
    bind_library_calls(module);
    bind_kernel_table(module);
}

} // namespace tcuda
