// The launch of a graph, for the fast path of a replay.
#pragma once

#include "driver/libcuda.hpp"

namespace tcuda {

// A graph is launched only while the context is current that was current when the launcher was made.
class GraphLauncher {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 12.4.
    explicit GraphLauncher(libcuda::GraphExec exec);

    // Returns a status. Nothing is done, and the status is invalid_context, if another context is current. Nothing is
    // done, and the status is capture_unsupported, if the stream is capturing.
    int launch(libcuda::Stream stream) const;

private:
    const libcuda::ContextCalls &contexts_;
    const libcuda::CaptureCalls &captures_;
    const libcuda::GraphCalls &graphs_;
    const libcuda::GraphExec exec_;
    libcuda::Context context_ = 0; // 0 where there is one device only: no other context can be current
};

} // namespace tcuda
