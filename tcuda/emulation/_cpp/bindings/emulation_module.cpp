// The classes of emulated devices in the Python module of the core.
#include <nanobind/nanobind.h>

#include "emulation/_cpp/bindings/emulated_activity.hpp"
#include "emulation/_cpp/bindings/emulated_arrays.hpp"
#include "emulation/_cpp/bindings/emulated_thread.hpp"
#include "emulation/_cpp/bindings/emulated_times.hpp"
#include "emulation/_cpp/bindings/emulated_work.hpp"
#include "emulation/_cpp/bindings/quiet_calls.hpp"

namespace tcuda {

// Each function is in the source file of its name.
void bind_emulated_kernels(nanobind::module_ &);
void bind_emulated_memory(nanobind::module_ &);
void bind_emulated_operation(nanobind::module_ &);

// Adds the classes of emulated devices to the module, which has those of the core already.
void bind_emulation(nanobind::module_ &module) {
    bind_emulated_memory(module);
    bind_emulated_kernels(module);
    bind_emulated_arrays(module);
    bind_emulated_thread(module);
    bind_emulated_activity(module);
    bind_emulated_times(module);
    bind_emulated_work(module);
    bind_quiet_calls(module);
    bind_emulated_operation(module);
}

} // namespace tcuda
