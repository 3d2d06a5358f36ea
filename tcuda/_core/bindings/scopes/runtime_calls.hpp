// The calls of the CUDA runtime, or of the emulated runtime, that change what is current.
#pragma once

#include <Python.h>

#include "bindings/python/python_calls.hpp"

namespace tcuda {

struct RuntimeCalls {
    PyObject *get_device, *set_device, *current_stream, *use_stream, *enter_stream, *exit_stream, *default_stream;
    PyObject *members; // a tuple that has the references to the others
    long long default_handle; // of `default_stream`

    // The index of the current device; -1 with a Python error set if that fails.
    long long current_device() const { return taken_integer(call(get_device)); }
    // False with a Python error set if that fails.
    bool make_current(long long device) const;
};

// The calls, for the duration of one function.
class FoundCalls {
public:
    // Finds the calls if they are not known yet. A Python error is set if there are none.
    FoundCalls() : calls_(kept_ != nullptr ? kept_ : find(&found_)) {}
    FoundCalls(const FoundCalls &) = delete;
    FoundCalls &operator=(const FoundCalls &) = delete;
    ~FoundCalls() {
        if (calls_ == &found_)
            Py_DECREF(found_.members);
    }
    explicit operator bool() const { return calls_ != nullptr; }
    const RuntimeCalls &operator*() const { return *calls_; }

    // In a forked child: forgets the calls.
    static void forget() { kept_ = nullptr; }

private:
    // Asks the function that finds the calls. The result is `found`, or `kept_` if the calls may be kept. Null with a
    // Python error set if that fails.
    static const RuntimeCalls *find(RuntimeCalls *found);

    static inline const RuntimeCalls *kept_ = nullptr;

    RuntimeCalls found_; // where the calls may not be kept
    const RuntimeCalls *const calls_;
};

// Sets the function that finds the calls. The function initialises the runtime, and returns a pair: a tuple of the
// calls in the order of RuntimeCalls, and whether the calls may be kept.
void find_calls_by(PyObject *function);

} // namespace tcuda
