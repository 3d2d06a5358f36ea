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
#include "graphs/lone_node.hpp"
#include "graphs/node_reader.hpp"
#include "graphs/noted_nodes.hpp"

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

std::pair<int, libcuda::Graph> copy_node(const LoneNodes &nodes, libcuda::Graph graph, std::size_t place) {
    libcuda::Graph alone = 0;
    const int status = nodes.copy(graph, place, &alone);
    return {status, alone};
}

std::pair<int, libcuda::Graph> child_of(const LoneNodes &nodes, libcuda::Graph graph, std::size_t place) {
    libcuda::Graph child = 0;
    const int status = nodes.child(graph, place, &child);
    return {status, child};
}

std::pair<int, std::vector<std::uintptr_t>> addresses_of(const LoneNodes &nodes, libcuda::Graph graph) {
    std::vector<std::uintptr_t> addresses;
    const int status = nodes.addresses(graph, &addresses);
    return {status, addresses};
}

std::pair<int, std::vector<std::uint64_t>> notes_of(const NotedNodes &nodes, libcuda::Graph graph) {
    std::vector<std::uint64_t> notes;
    const int status = nodes.notes_of(graph, &notes);
    return {status, notes};
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
    nb::class_<CudaGraphs>(module, "CudaGraphs", R"(
    Calls for graphs and captures that CuPy lacks, made through the driver; each returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("capture_info", capture_info, nb::arg("stream"),
             nb::sig("def capture_info(self, stream: int) -> tuple[int, int, int]"),
             "Return a status, the status of the capture of ``stream``, and the number of the capture.")
        .def("begin_graph", begin_graph, nb::arg("ledger"), nb::arg("pool"), nb::arg("capture"), nb::arg("stream"),
             nb::arg("device"), nb::arg("mode"), R"(
        Begin a capture whose memory comes from a pool, for the driver and for the ledger; return a status.

        Args:
            ledger: The ledger.
            pool: The pool.
            capture: An object whose ``number`` becomes the number of the capture.
            stream: The stream that captures.
            device: The device of the stream.
            mode: A ``CUstreamCaptureMode``.)")
        .def("end_graph", end_graph, nb::arg("ledger"), nb::arg("capture"), nb::arg("number"), nb::arg("stream"),
             nb::arg("device"), nb::arg("bodies"), nb::arg("flags").none(), nb::arg("keep"), R"(
        End a capture for the driver and for the ledger; return a status and the name of the call that failed.

        Args:
            ledger: The ledger, which keeps the memory from before the capture that the graph uses.
            capture: An object whose ``ended`` becomes a tuple: the ``cudaGraph_t`` or 0, the ``cudaGraphExec_t`` or 0,
                the number of nodes, and the result of :meth:`Ledger.hold`.
            number: The number of the capture.
            stream: The stream on which the capture has begun.
            device: The device of the stream.
            bodies: The graphs of the bodies of conditional nodes.
            flags: The flags of the executable graph; None for no executable graph.
            keep: Whether the ``cudaGraph_t`` is kept.)")
        .def("instantiate", instantiate, nb::arg("graph"), nb::arg("flags"), nb::call_guard<nb::gil_scoped_release>(),
             "Return a status and a ``cudaGraphExec_t``; the call is allowed while streams capture.")
        .def("destroy_exec", &CudaGraphs::destroy_exec, nb::arg("exec"), nb::call_guard<nb::gil_scoped_release>(),
             "Destroy a ``cudaGraphExec_t``, and return a status; the call is allowed while streams capture.")
        .def("contents", contents, nb::arg("graph"),
             nb::sig("def contents(self, graph: int) -> tuple[int, int, list[int]]"),
             "Return a status, the number of nodes, and the numbers in their parameters that may be addresses.");

    nb::class_<GraphChanges>(module, "GraphChanges", R"(
    Changes of executable graphs; each call returns a status first. The calls are allowed while streams capture.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("update", update, nb::arg("exec"), nb::arg("graph"),
             nb::sig("def update(self, exec: int, graph: int) -> tuple[int, int, int]"), R"(
        Give ``exec`` the parameters of the nodes of ``graph``.

        Returns:
            A status, the ``CUgraphExecUpdateResult``, and the place in ``graph`` of the node that cannot be updated; -1
            if the node is not known.)")
        .def("move", move_addresses, nb::arg("graphs"), nb::arg("exec"), nb::arg("begin"), nb::arg("end"),
             nb::arg("offset"), nb::arg("block_begin"), nb::arg("block_end"),
             nb::sig("def move(self, graphs: Sequence[int], exec: int, begin: int, end: int, offset: int, block_begin: "
                     "int, block_end: int) -> tuple[int, int, int, list[int], int, int]"),
             R"(
        Add ``offset`` to the addresses from ``begin`` to ``end`` in the parameters of all nodes.

        A failure, a doubtful node, and addresses that no node has leave everything as it was.

        Args:
            graphs: The graph, and the bodies of its conditional nodes.
            exec: The executable graph that is updated; 0 for none.
            begin: The first address that moves.
            end: The first address that does not move.
            offset: The number to add, modulo 2**64.
            block_begin: The begin of the allocation. A node that has another address of the allocation is doubtful.
            block_end: The end of the allocation.

        Returns:
            A status, the number of nodes with such addresses, the first doubtful node, counted over all graphs, the
            numbers that may be addresses after the move, and the last two results of :meth:`update`. The number of the
            node is -1 if no node is doubtful.)")
        .def("set_enabled", &GraphChanges::set_enabled, nb::arg("exec"), nb::arg("graph"), nb::arg("place"),
             nb::arg("enabled"),
             "Let launches of ``exec`` do or skip the node at ``place`` of ``graph``, and return a status.")
        .def("is_enabled", is_enabled, nb::arg("exec"), nb::arg("graph"), nb::arg("place"),
             "Return a status, and whether launches of ``exec`` do the node at ``place`` of ``graph``.");

    nb::class_<ConditionalNodes>(module, "ConditionalNodes", R"(
    Conditional nodes in captures; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("add", add_conditional, nb::arg("stream"), nb::arg("kind"), nb::arg("flag"), nb::arg("size"),
             nb::sig("def add(self, stream: int, kind: int, flag: int, size: int) -> tuple[int, int, int]"),
             "Capture a kernel that reads a flag, and a conditional node; return the handle and the graph of the body.")
        .def("set", &ConditionalNodes::set, nb::arg("stream"), nb::arg("handle"), nb::arg("flag"), nb::arg("size"),
             "Capture a kernel that copies a flag of 1 or 4 bytes to the value of a conditional handle.")
        .def("begin_capture_to_graph", &ConditionalNodes::begin_capture_to_graph, nb::arg("stream"), nb::arg("graph"),
             nb::arg("mode"), "Let the work of ``stream`` be captured into ``graph``.");

    nb::class_<NodeReader>(module, "NodeReader", R"(
    Reads what the nodes of graphs do and wait for; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("read", read_nodes, nb::arg("graph"),
             nb::sig("def read(self, graph: int) -> tuple[int, list[tuple[int, int, bytes, int, list[int]]]]"),
             "Return a status and, for each node, its type, number, kernel, event, and the nodes that it waits for.")
        .def("number_of", number_of, nb::arg("executable"),
             "Return a status and the number by which profilers name the ``cudaGraphExec_t``; 0 with older drivers.");

    nb::class_<LoneNodes>(module, "LoneNodes", R"(
    Graphs with a copy of a single node; each call returns a status first.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("copy", copy_node, nb::arg("graph"), nb::arg("place"),
             "Return a status, and a new graph with a copy of the node at ``place`` of ``graph``; 801: no such copy.")
        .def("child", child_of, nb::arg("graph"), nb::arg("place"),
             "Return a status, and the graph of the child graph at ``place`` of ``graph``.")
        .def("addresses", addresses_of, nb::arg("graph"),
             "Return a status, and the numbers that may be addresses, in the order of the parameters.");

    nb::class_<NotedNodes>(module, "NotedNodes", R"(
    Notes of the nodes of a capture, taken while the capture is in progress.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<>())
        .def("note", &NotedNodes::note, nb::arg("stream"), nb::arg("note"),
             "Give ``note``, which is not 0, to the nodes that ``stream`` has captured since; return their number.")
        .def("notes_of", notes_of, nb::arg("graph"),
             "Return a status, and the notes of the nodes of ``graph``; 0 for a node without a note.");

    nb::class_<PythonLauncher>(module, "GraphLauncher", R"(
    Launches the graph ``exec`` while the device is current that was current when the launcher was made.

    Args:
        exec: A ``cudaGraphExec_t``.
        current_stream: A capsule with CuPy's C function that returns the handle of the current stream.

    Raises:
        RuntimeError: The machine has no driver, or the driver is older than that of CUDA 12.4.)")
        .def(nb::init<libcuda::GraphExec, nb::handle>(), nb::arg("exec"), nb::arg("current_stream"))
        .def("launch", &PythonLauncher::launch, R"(
        Launch the graph on the current stream, and return a status.

        If another device is current, the method does nothing and returns 201. If the stream is capturing, the method
        does nothing and returns 900.)")
        .def_prop_ro("launched", &PythonLauncher::launched, "Return whether :meth:`launch` was called.");
}

} // namespace tcuda
