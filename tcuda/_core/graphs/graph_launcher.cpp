#include "graphs/graph_launcher.hpp"

#include "driver/status.hpp"

namespace tcuda {

GraphLauncher::GraphLauncher(libcuda::GraphExec exec)
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), captures_(libcuda::calls<libcuda::CaptureCalls>()),
      graphs_(libcuda::calls<libcuda::GraphCalls>()), exec_(exec) {
    int devices = 0;
    if (contexts_.device_count(&devices) != success || devices != 1)
        contexts_.get_current(&context_);
}

int GraphLauncher::launch(libcuda::Stream stream) const {
    libcuda::Context context = 0;
    if (context_ != 0 && (contexts_.get_current(&context) != success || context != context_))
        return invalid_context;
    int capturing = 0;
    if (const int status = captures_.is_capturing(stream, &capturing))
        return status;
    return capturing != 0 ? capture_unsupported : graphs_.launch(exec_, stream);
}

} // namespace tcuda
