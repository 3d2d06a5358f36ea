#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/graphs/graph_captures.hpp"
#include "bindings/graphs/python_launcher.hpp"
#include "bindings/python/containers.hpp"
#include "driver/status.hpp"
#include "graphs/conditional_nodes.hpp"
#include "graphs/cuda_graphs.hpp"
#include "graphs/graph_changes.hpp"
#include "graphs/node_reader.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

nb::tuple capture_info(const CudaGraphs &graphs, libcuda::Stream stream) {
    CudaGraphs::CaptureInfo info;
    const int status = graphs.capture_info(stream, &info);
    return nb::make_tuple(status, info.status, info.id);
}

std::pair<int, libcuda::GraphExec> instantiate(const CudaGraphs &graphs, libcuda::Graph graph, std::uint64_t flags) {
    libcuda::GraphExec exec = 0;
    const int status = graphs.instantiate(graph, flags, &exec);
    return {status, exec};
}

nb::tuple contents(const CudaGraphs &graphs, libcuda::Graph graph) {
    std::size_t nodes = 0;
    std::vector<std::uintptr_t> addresses;
    const int status = graphs.contents(graph, &nodes, &addresses);
    return nb::make_tuple(status, nodes, addresses);
}

nb::tuple add_conditional(ConditionalNodes &nodes, libcuda::Stream stream, int kind, libcuda::DevicePointer flag,
                          std::size_t size) {
    libcuda::ConditionalHandle handle = 0;
    libcuda::Graph body = 0;
    const int status = nodes.add(stream, kind, flag, size, &handle, &body);
    return nb::make_tuple(status, handle, body);
}

nb::tuple read_nodes(const NodeReader &reader, libcuda::Graph graph) {
    std::vector<NodeFacts> nodes;
    const int status = reader.read(graph, &nodes);
    nb::list facts = new_list();
    if (status == success)
        for (const NodeFacts &node : nodes)
            facts.append(nb::make_tuple(node.type, node.number, nb::bytes(node.kernel.data(), node.kernel.size()),
                                        node.event, node.before));
    return nb::make_tuple(status, facts);
}

std::pair<int, std::uint64_t> number_of(const NodeReader &reader, libcuda::GraphExec executable) {
    std::uint64_t number = 0;
    const int status = reader.number_of(executable, &number);
    return {status, number};
}

nb::tuple update(const GraphChanges &changes, libcuda::GraphExec exec, libcuda::Graph graph) {
    GraphChanges::Reason reason;
    const int status = changes.update(exec, graph, &reason);
    return nb::make_tuple(status, reason.result, reason.node);
}

nb::tuple move_addresses(const GraphChanges &changes, const std::vector<libcuda::Graph> &graphs,
                         libcuda::GraphExec exec, std::uintptr_t begin, std::uintptr_t end, std::uintptr_t offset,
                         std::uintptr_t block_begin, std::uintptr_t block_end) {
    GraphChanges::Moved moved;
    const int status = changes.move(graphs, exec, {begin, end, offset, block_begin, block_end}, &moved);
    return nb::make_tuple(status, moved.nodes, moved.doubtful, moved.addresses, moved.reason.result, moved.reason.node);
}

std::pair<int, bool> is_enabled(const GraphChanges &changes, libcuda::GraphExec exec, libcuda::Graph graph,
                                std::size_t place) {
    bool enabled = false;
    const int status = changes.is_enabled(exec, graph, place, &enabled);
    return {status, enabled};
}

} // namespace

// Adds the calls for graphs, and the launcher of a graph, to the module.
void bind_graphs(nb::module_ &module) {
    nb::class_<CudaGraphs>(module, "CudaGraphs")
        .def(nb::init<>())
        .def("capture_info", capture_info, nb::arg("stream"))
        .def("begin_graph", begin_graph, nb::arg("ledger"), nb::arg("pool"), nb::arg("capture"), nb::arg("stream"),
             nb::arg("device"), nb::arg("mode"))
        .def("end_graph", end_graph, nb::arg("ledger"), nb::arg("capture"), nb::arg("number"), nb::arg("stream"),
             nb::arg("device"), nb::arg("bodies"), nb::arg("flags").none(), nb::arg("keep"))
        .def("instantiate", instantiate, nb::arg("graph"), nb::arg("flags"), nb::call_guard<nb::gil_scoped_release>())
        .def("destroy_exec", &CudaGraphs::destroy_exec, nb::arg("exec"), nb::call_guard<nb::gil_scoped_release>())
        .def("contents", contents, nb::arg("graph"));

    nb::class_<GraphChanges>(module, "GraphChanges")
        .def(nb::init<>())
        .def("update", update, nb::arg("exec"), nb::arg("graph"))
        .def("move", move_addresses, nb::arg("graphs"), nb::arg("exec"), nb::arg("begin"), nb::arg("end"),
             nb::arg("offset"), nb::arg("block_begin"), nb::arg("block_end"))
        .def("set_enabled", &GraphChanges::set_enabled, nb::arg("exec"), nb::arg("graph"), nb::arg("place"),
             nb::arg("enabled"))
        .def("is_enabled", is_enabled, nb::arg("exec"), nb::arg("graph"), nb::arg("place"));

    nb::class_<ConditionalNodes>(module, "ConditionalNodes")
        .def(nb::init<>())
        .def("add", add_conditional, nb::arg("stream"), nb::arg("kind"), nb::arg("flag"), nb::arg("size"))
        .def("set", &ConditionalNodes::set, nb::arg("stream"), nb::arg("handle"), nb::arg("flag"), nb::arg("size"))
        .def("begin_capture_to_graph", &ConditionalNodes::begin_capture_to_graph, nb::arg("stream"), nb::arg("graph"),
             nb::arg("mode"));

    nb::class_<NodeReader>(module, "NodeReader")
        .def(nb::init<>())
        .def("read", read_nodes, nb::arg("graph"))
        .def("number_of", number_of, nb::arg("executable"));

    nb::class_<PythonLauncher>(module, "GraphLauncher")
        .def(nb::init<libcuda::GraphExec, nb::handle>(), nb::arg("exec"), nb::arg("current_stream"))
        .def("launch", &PythonLauncher::launch)
        .def_prop_ro("launched", &PythonLauncher::launched);
}

} // namespace tcuda
