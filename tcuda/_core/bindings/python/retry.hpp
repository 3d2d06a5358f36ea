// Steps that must not be left out.
#pragma once

#include "bindings/python/raised.hpp"

namespace tcuda {

// Calls `step` until it returns true. `step` returns false with a Python error set, which `raised` takes. A signal
// handler that raises can interrupt the Python code of a step. A step that fails this often fails for a reason of its
// own.
template <typename Step> void retry(Raised &raised, Step step) {
    constexpr int most_tries = 16;
    for (int tries = 0; tries < most_tries; ++tries) {
        if (step())
            return;
        raised.take();
    }
}

} // namespace tcuda
