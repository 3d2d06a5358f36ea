// Failures of the ledger as Python errors.
#pragma once

#include "bindings/memory/python_ledger.hpp"
#include "bindings/python/interruption.hpp"

namespace tcuda {

// Sets the Python error for the C++ exception that is being handled. If an interruption has caused the exception, the
// error is the interruption.
void set_error(const PythonLedger &ledger) noexcept;

// Does the same, and raises the error.
[[noreturn]] void raise_error(const PythonLedger &ledger);

// Returns what `call` returns. A failure of the ledger becomes a Python error.
template <typename Call> auto guarded(const PythonLedger &ledger, Call call) {
    try {
        return call();
    } catch (...) {
        raise_error(ledger);
    }
}

// Makes a call that may wait for a device, while other threads of Python run. Such a thread may free memory. For that
// case the history has the stack of this caller.
template <typename Call> void guarded_without_lock(const PythonLedger &ledger, Call call) {
    guarded(ledger, [&] {
        const NotedCall noted = ledger.ledger.noted_call();
        const nanobind::gil_scoped_release release;
        call();
    });
    Interruption::raise_if_any();
}

} // namespace tcuda
