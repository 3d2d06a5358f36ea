// Calls of the CUDA runtime that CuPy lacks, made through the driver.
#pragma once

#include "driver/libcuda.hpp"

namespace tcuda {

// Every call returns a status. CUDA must have been initialised before.
class CudaCalls {
public:
    // Throws std::runtime_error where there is no driver, or one older than that of CUDA 11.4.
    CudaCalls();

    int device_uuid(int device, libcuda::Uuid *uuid) const;

    // The priorities of the device whose context is current.
    int stream_priority_range(int *least, int *greatest) const;

    int event_record_with_flags(libcuda::Event event, libcuda::Stream stream, unsigned flags) const;

    // A stream of the current context.
    int stream_create_with_priority(unsigned flags, int priority, libcuda::Stream *stream) const;
    int stream_flags(libcuda::Stream stream, unsigned *flags) const;
    int stream_priority(libcuda::Stream stream, int *priority) const;

    int graph_dot_print(libcuda::Graph graph, const char *path, unsigned flags) const;

private:
    const libcuda::ContextCalls &contexts_;
    const libcuda::SupplementCalls &supplement_;
};

} // namespace tcuda
