// The connection of the ledger with torch's pluggable allocator.
#pragma once

#include "bindings/memory/python_ledger.hpp"

namespace tcuda {

// Lets the functions that torch loads use `ledger`. The ledger then lives for ever: tensors may outlive everything
// else.
void share_with_torch(PythonLedger &ledger);

} // namespace tcuda
