#include "graphs/cuda_graphs.hpp"

#include <algorithm>

#include "driver/relaxed_captures.hpp"
#include "graphs/graph_reader.hpp"

namespace tcuda {

CudaGraphs::CudaGraphs()
    : captures_(libcuda::calls<libcuda::CaptureCalls>()), graphs_(libcuda::calls<libcuda::GraphCalls>()) {}

int CudaGraphs::capture_info(libcuda::Stream stream, CaptureInfo *info) const {
    *info = {libcuda::capture_status_none, 0};
    const int status = graphs_.capture_info(stream, &info->status, &info->id, nullptr, nullptr, nullptr);
    if (info->status == libcuda::capture_status_none)
        info->id = 0;
    return status;
}

int CudaGraphs::instantiate(libcuda::Graph graph, std::uint64_t flags, libcuda::GraphExec *exec) const {
    const RelaxedCaptures relaxed(captures_);
    return graphs_.instantiate(exec, graph, flags);
}

int CudaGraphs::destroy_exec(libcuda::GraphExec exec) const {
    const RelaxedCaptures relaxed(captures_);
    return graphs_.destroy_exec(exec);
}

int CudaGraphs::contents(libcuda::Graph graph, std::size_t *nodes, std::vector<std::uintptr_t> *addresses) const {
    const int status = GraphReader(graphs_, *addresses).read(graph, nodes);
    std::sort(addresses->begin(), addresses->end());
    addresses->erase(std::unique(addresses->begin(), addresses->end()), addresses->end());
    return status;
}

} // namespace tcuda
