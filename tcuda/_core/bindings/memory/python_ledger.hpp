// The object behind the Python class Ledger.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "bindings/python/interruption.hpp"
#include "memory/ledger/ledger.hpp"
#include "memory/ledger/nvtx_memory.hpp"

namespace tcuda {

// The ledger, and the functions that raise the Python errors for its failures.
struct PythonLedger {
    PythonLedger(Driver &driver, int devices, const Settings &settings, nanobind::object fail_memory,
                 nanobind::object fail_driver, nanobind::object relieve)
        : ledger(driver, devices, settings), fail_memory(std::move(fail_memory)), fail_driver(std::move(fail_driver)),
          relieve(std::move(relieve)) {}

    // The end of the ledger destroys events. The member is destroyed after the ledger, and delivers the interruptions
    // of that work.
    struct Delivery {
        ~Delivery() { Interruption::deliver(); }
    } delivery;
    std::unique_ptr<NvtxMemory> nvtx; // null if no tool hears of arrays
    Ledger ledger;
    nanobind::object fail_memory; // takes the facts of an OutOfMemory by keyword
    nanobind::object fail_driver; // takes the status and the call of a DriverError
    nanobind::object relieve; // takes a device and a size, and returns whether to try an allocation again; or None
    std::string metadata;
};

} // namespace tcuda
