// The Python objects that launch a kernel when they are called. A call runs no Python frame.
#pragma once

#include <Python.h>

#include "bindings/kernels/kernel_parameters.hpp"
#include "bindings/scopes/current_stream.hpp"
#include "kernels/kernel_launcher.hpp"

namespace tcuda {

// Creates the type; null with a Python error set if that fails. Called once, when the module is made.
PyObject *make_kernel_function_type();

// The parts of a kernel function. The Python objects `..._owner` keep `parameters` and `launcher` alive.
struct KernelFunctionParts {
    PyObject *name;                     // a str, for messages
    PyObject *parameters_owner;
    const KernelParameters *parameters;
    PyObject *launcher_owner;           // None where `launch` launches the kernel
    const KernelLauncher *launcher;     // null where `launch` launches the kernel
    CurrentStream *current_stream;      // null where `launch` launches the kernel
    PyObject *launch;                   // launches the kernel, or repairs the cause of a failed launch
    PyObject *configure;                // the attribute set_shared_memory_config
};

// A callable (grid, block, args, shared_mem, stream). New reference; null with a Python error set if that fails.
//
// With a launcher, the driver launches the kernel. If the launch fails, or the kernel is not loaded for the current
// context, the object calls launch(status, attempt, grid, block, shared_mem). This function raises an exception, or
// returns for another attempt. Without a launcher, launch(grid, block, arguments, args, shared_mem, stream) launches
// the kernel. `arguments` has the bytes of `args`.
PyObject *make_kernel_function(PyObject *type, const KernelFunctionParts &parts);

} // namespace tcuda
