#include "driver/cuda_calls.hpp"

#include "driver/status.hpp"

namespace tcuda {

CudaCalls::CudaCalls()
    : contexts_(libcuda::calls<libcuda::ContextCalls>()), supplement_(libcuda::calls<libcuda::SupplementCalls>()) {}

int CudaCalls::device_uuid(int device, libcuda::Uuid *uuid) const {
    libcuda::Device handle = 0;
    const int status = contexts_.device_get(&handle, device);
    return status != success ? status : supplement_.device_uuid(uuid, handle);
}

int CudaCalls::stream_priority_range(int *least, int *greatest) const {
    return supplement_.stream_priority_range(least, greatest);
}

int CudaCalls::event_record_with_flags(libcuda::Event event, libcuda::Stream stream, unsigned flags) const {
    return supplement_.event_record_with_flags(event, stream, flags);
}

int CudaCalls::stream_create_with_priority(unsigned flags, int priority, libcuda::Stream *stream) const {
    return supplement_.stream_create_with_priority(stream, flags, priority);
}

int CudaCalls::stream_flags(libcuda::Stream stream, unsigned *flags) const {
    return supplement_.stream_flags(stream, flags);
}

int CudaCalls::stream_priority(libcuda::Stream stream, int *priority) const {
    return supplement_.stream_priority(stream, priority);
}

int CudaCalls::graph_dot_print(libcuda::Graph graph, const char *path, unsigned flags) const {
    return supplement_.graph_dot_print(graph, path, flags);
}

} // namespace tcuda
