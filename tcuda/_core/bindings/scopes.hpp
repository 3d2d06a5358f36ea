// The context managers of the current device and the current stream.
//
// Rules:
//   1. No Python code runs between a change of what is current and its note, but for the calls of an emulated runtime,
//      each of which either changes it or raises. So an exception from a signal handler leaves nothing half done.
//   2. Each thread has a stack of the scopes that it is in. A scope that another thread leaves, as the generator does
//      that is closed there, is abandoned: nothing of that thread changes, and the thread that entered the scope goes
//      back when it next enters or leaves a scope.
//   3. The lock of the stacks is held while no Python code can run.
#pragma once

#include <Python.h>

namespace tcuda {

// Adds the types DeviceScope, StreamScope and StreamMethods to `module`. False with a Python error set if that fails.
//
// The first two are bases of `tcuda.device` and `tcuda.StreamContext`, the third, of `tcuda.Stream`, lets a stream itself
// be a scope.
bool add_scopes(PyObject *module);

// Sets the function that finds the calls of the runtime. It initialises, and returns a pair: a tuple of getDevice,
// setDevice, currentStream, useStream, enterStream, exitStream and defaultStream, and whether they may be kept.
void find_calls_by(PyObject *function);

// In a forked child: forgets the calls, and the scopes that the parent was in.
void forget_scopes();

} // namespace tcuda
