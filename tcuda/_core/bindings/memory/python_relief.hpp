#pragma once

#include <cstdint>

#include "bindings/memory/python_ledger.hpp"
#include "memory/ledger/relief.hpp"

namespace tcuda {

// Calls the function of the ledger that calls the callbacks of the program. If they do not help, frees arrays in cycles
// of references once, as CuPy's pool does before it reports that a device has no room. The caller may have Python's
// lock or not. An object serves one allocation.
class PythonRelief final : public Relief {
public:
    explicit PythonRelief(PythonLedger &ledger) : ledger_(ledger) {}
    bool relieve(int device, std::size_t size) override;

private:
    PythonLedger &ledger_;
    bool has_collected_ = false;
    int fruitless_ = 0; // calls in a row that asked for another try and freed no memory of the device
};

} // namespace tcuda
