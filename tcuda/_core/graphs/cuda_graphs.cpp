#include "graphs/cuda_graphs.hpp"

#include <algorithm>

#include "driver/relaxed_captures.hpp"
#include "driver/status.hpp"
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

int CudaGraphs::end_capture(libcuda::Stream stream, const std::vector<libcuda::Graph> &bodies,
                            std::optional<std::uint64_t> flags, bool keep, Ended *ended, const char **failed) const {
    *failed = "cuStreamEndCapture";
    int status = graphs_.end_capture(stream, &ended->graph);
    if (status != success)
        return status;
    *failed = "cuGraphGetNodes";
    status = contents(ended->graph, &ended->nodes, &ended->addresses);
    std::size_t nodes_of_body;
    for (std::size_t i = 0; status == success && i < bodies.size(); ++i)
        status = contents(bodies[i], &nodes_of_body, &ended->addresses);
    if (status == success && flags) {
        *failed = "cuGraphInstantiateWithFlags";
        status = instantiate(ended->graph, *flags, &ended->exec);
    }
    if (status != success || !keep) {
        graphs_.destroy(ended->graph);
        ended->graph = 0;
    }
    return status;
}

void CudaGraphs::destroy(const Ended &ended) const {
    if (ended.exec != 0)
        destroy_exec(ended.exec);
    if (ended.graph != 0)
        graphs_.destroy(ended.graph);
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
