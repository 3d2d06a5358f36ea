#include "sanitizer/_cpp/watch/content_reader.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "driver/status.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace tcuda::watch {
namespace {

using races::AccessKind;
using races::Dimension;
using races::RaceDetector;

// The types of memory in cuda.h
constexpr int memory_of_host = 1, array_memory = 3;

constexpr int most_depth = 64; // of child graphs in child graphs

// Hides the notes of the thread: they belong to another call.
class WithoutNotes {
public:
    WithoutNotes() : hidden_(std::exchange(innermost_notes(), nullptr)) {}
    ~WithoutNotes() { innermost_notes() = hidden_; }
    WithoutNotes(const WithoutNotes &) = delete;
    WithoutNotes &operator=(const WithoutNotes &) = delete;

private:
    CallNotes *const hidden_;
};

void add_rows(Address address, const std::vector<Dimension> &shape, AccessKind kind, std::string_view label,
              std::vector<RaceDetector::NamedUse> *uses) {
    RaceDetector::NamedUse &named = uses->emplace_back();
    named.use.region.set(address, 1, shape);
    named.use.kind = kind;
    named.label = label;
}

std::int64_t whole(std::size_t number) { return static_cast<std::int64_t>(number); }

void add_end(const libcuda::MemcpyEnd &end, const libcuda::MemcpyNode &copy, AccessKind kind, std::string_view label,
             std::vector<RaceDetector::NamedUse> *uses) {
    if (end.memory_type == array_memory)
        return;
    const Address begin = end.memory_type == memory_of_host ? end.host : end.device;
    const std::size_t slice = end.pitch * end.height;
    std::vector<Dimension> shape;
    if (copy.depth > 1)
        shape.push_back({whole(copy.depth), whole(slice)});
    if (copy.height > 1)
        shape.push_back({whole(copy.height), whole(end.pitch)});
    shape.push_back({whole(copy.width), 1});
    add_rows(begin + end.z * slice + end.y * end.pitch + end.x, shape, kind, label, uses);
}

} // namespace

void read_copy(const libcuda::MemcpyNode &copy, std::vector<RaceDetector::NamedUse> *uses) {
    if (copy.width == 0 || copy.height == 0 || copy.depth == 0)
        return;
    add_end(copy.source, copy, AccessKind::read, "source", uses);
    add_end(copy.target, copy, AccessKind::write, "target", uses);
}

void read_fill(const libcuda::MemsetNode &fill, std::vector<RaceDetector::NamedUse> *uses) {
    if (fill.width == 0 || fill.height == 0)
        return;
    std::vector<Dimension> shape;
    if (fill.height > 1)
        shape.push_back({whole(fill.height), whole(fill.pitch)});
    shape.push_back({whole(fill.width * fill.element_size), 1});
    add_rows(fill.target, shape, AccessKind::write, "target", uses);
}

GraphContent ContentReader::read(libcuda::Graph graph) {
    const Handles handles = handles_of(graph);
    const std::size_t count = handles.nodes.size();
    std::vector<Places> after(count);
    std::vector<std::size_t> waiting(count);
    for (std::size_t number = 0; number < count; ++number) {
        waiting[number] = handles.before[number].size();
        for (const std::size_t earlier : handles.before[number])
            after[earlier].push_back(number);
    }
    // Of the nodes that can come next, the first in the driver's order comes next.
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t number = 0; number < count; ++number)
        if (waiting[number] == 0)
            ready.push(number);
    GraphContent content;
    std::vector<Places> ends(count); // the places that stand for the end of each node
    std::map<libcuda::Event, std::size_t> recorded;
    while (!ready.empty()) {
        const std::size_t number = ready.top();
        ready.pop();
        for (const std::size_t next : after[number])
            if (--waiting[next] == 0)
                ready.push(next);
        Places before;
        for (const std::size_t earlier : handles.before[number])
            before.insert(before.end(), ends[earlier].begin(), ends[earlier].end());
        const libcuda::GraphNode handle = handles.nodes[number];
        int type = -1;
        if (questions_.node_type == nullptr || questions_.node_type(handle, &type) != success)
            type = -1;
        if (type == libcuda::node_type_graph) {
            ends[number] = add_child(&content, child_of(handle), handle, before);
            continue;
        }
        GraphContent::Node node = node_of(handle, type);
        if (type == libcuda::node_type_record && node.event != 0)
            recorded[node.event] = content.nodes.size();
        const auto record = type == libcuda::node_type_wait ? recorded.find(node.event) : recorded.end();
        if (record != recorded.end())
            before.push_back(record->second); // the node waits for the record in the same launch
        std::sort(before.begin(), before.end());
        before.erase(std::unique(before.begin(), before.end()), before.end());
        node.dependencies = std::move(before);
        ends[number] = {content.nodes.size()};
        content.nodes.push_back(std::move(node));
        if (type == libcuda::node_type_conditional)
            ends[number] = add_bodies(&content, handle, ends[number]);
    }
    return content;
}

ContentReader::Handles ContentReader::handles_of(libcuda::Graph graph) const {
    Handles handles;
    std::size_t count = 0;
    if (questions_.nodes == nullptr || questions_.nodes(graph, nullptr, &count) != success || count == 0)
        return handles;
    handles.nodes.resize(count);
    if (questions_.nodes(graph, handles.nodes.data(), &count) != success)
        count = 0;
    handles.nodes.resize(std::min(count, handles.nodes.size()));
    std::unordered_map<libcuda::GraphNode, std::size_t> numbers;
    for (std::size_t number = 0; number < handles.nodes.size(); ++number)
        numbers.emplace(handles.nodes[number], number);
    handles.before.resize(handles.nodes.size());
    const std::optional<std::vector<Edge>> edges = edges_of(graph);
    if (!edges) { // without the edges, no two nodes are accused
        for (std::size_t number = 1; number < handles.nodes.size(); ++number)
            handles.before[number].push_back(number - 1);
        return handles;
    }
    for (const auto &[from, to] : *edges) {
        const auto earlier = numbers.find(from), later = numbers.find(to);
        if (earlier != numbers.end() && later != numbers.end())
            handles.before[later->second].push_back(earlier->second);
    }
    return handles;
}

std::optional<std::vector<ContentReader::Edge>> ContentReader::edges_of(libcuda::Graph graph) const {
    constexpr std::size_t data_size = 8; // of CUgraphEdgeData
    const auto ask = [&](libcuda::GraphNode *from, libcuda::GraphNode *to, void *data, std::size_t *count) {
        if (questions_.edges != nullptr)
            return questions_.edges(graph, from, to, data, count);
        if (questions_.edges_without_data != nullptr)
            return questions_.edges_without_data(graph, from, to, count);
        return not_supported;
    };
    std::size_t count = 0;
    if (ask(nullptr, nullptr, nullptr, &count) != success)
        return std::nullopt;
    std::vector<Edge> edges;
    if (count == 0)
        return edges;
    std::vector<libcuda::GraphNode> from(count), to(count);
    std::vector<char> data(count * data_size); // without it, the driver refuses graphs whose edges have data
    if (ask(from.data(), to.data(), data.data(), &count) != success)
        return std::nullopt;
    for (std::size_t number = 0; number < std::min(count, from.size()); ++number)
        edges.emplace_back(from[number], to[number]);
    return edges;
}

GraphContent::Node ContentReader::node_of(libcuda::GraphNode handle, int type) {
    GraphContent::Node node;
    node.handle = handle;
    node.type = type;
    if (type == libcuda::node_type_record) {
        if (questions_.recorded_event == nullptr || questions_.recorded_event(handle, &node.event) != success)
            node.event = 0;
        node.kept.name = "event record";
        return node;
    }
    if (type == libcuda::node_type_wait) {
        if (questions_.awaited_event == nullptr || questions_.awaited_event(handle, &node.event) != success)
            node.event = 0;
        node.kept.name = "event wait";
        return node;
    }
    if (const CapturedNodes::Known known = captured_.find(handle); known != nullptr && known->child == nullptr) {
        node.kept = known->node;
        return node;
    }
    const WithoutNotes without_notes;
    std::vector<RaceDetector::NamedUse> uses;
    if (type == libcuda::node_type_kernel) {
        libcuda::KernelNode kernel{};
        if (questions_.kernel_node != nullptr && questions_.kernel_node(handle, &kernel) == success) {
            const NamedOperation operation = launches_.uses_of(launch_of(kernel));
            node.kept.name = operation.name;
            node.kept.uses = KeptUses(operation.uses);
        }
    } else if (type == libcuda::node_type_memcpy) {
        libcuda::MemcpyNode copy{};
        if (questions_.memcpy_node != nullptr && questions_.memcpy_node(handle, &copy) == success)
            read_copy(copy, &uses);
        node.kept.name = copy_name;
        node.kept.uses = KeptUses({uses.data(), uses.size()});
    } else if (type == libcuda::node_type_memset) {
        libcuda::MemsetNode fill{};
        if (questions_.memset_node != nullptr && questions_.memset_node(handle, &fill) == success)
            read_fill(fill, &uses);
        node.kept.name = fill_name;
        node.kept.uses = KeptUses({uses.data(), uses.size()});
    } else if (type == libcuda::node_type_host) {
        node.kept.name = RaceDetector::host_function;
    }
    return node;
}

GraphContent ContentReader::child_of(libcuda::GraphNode handle) {
    if (const CapturedNodes::Known known = captured_.find(handle); known != nullptr && known->child != nullptr)
        return *known->child;
    libcuda::Graph graph = 0;
    if (depth_ >= most_depth || questions_.child_graph == nullptr || questions_.child_graph(handle, &graph) != success)
        return {};
    ++depth_;
    GraphContent content = read(graph);
    --depth_;
    return content;
}

ContentReader::Places ContentReader::add_bodies(GraphContent *content, libcuda::GraphNode handle, Places before) {
    const CapturedNodes::Known known = captured_.find(handle);
    if (known == nullptr || known->bodies.empty() || depth_ >= most_depth)
        return before;
    Places last;
    for (const libcuda::Graph graph : known->bodies) {
        ++depth_;
        GraphContent body = read(graph);
        --depth_;
        for (GraphContent::Node &node : body.nodes)
            for (KeptUses::Labelled &labelled : node.kept.uses.uses) {
                labelled.use.possible = true;
                labelled.use.sure.reset();
            }
        const Places ends = add_child(content, std::move(body), handle, before);
        last.insert(last.end(), ends.begin(), ends.end());
    }
    return last;
}

ContentReader::Places ContentReader::add_child(GraphContent *content, GraphContent child, libcuda::GraphNode handle,
                                               const Places &before) {
    const std::size_t first = content->nodes.size(), count = child.nodes.size();
    content->children.push_back({handle, first, count});
    for (const GraphContent::Child &inner : child.children)
        content->children.push_back({inner.handle, first + inner.first, inner.count});
    std::vector<bool> is_last(count, true);
    for (GraphContent::Node &node : child.nodes) {
        for (std::size_t &place : node.dependencies) {
            is_last[place] = false;
            place += first;
        }
        if (node.dependencies.empty())
            node.dependencies = before;
        content->nodes.push_back(std::move(node));
    }
    Places last;
    for (std::size_t place = 0; place < count; ++place)
        if (is_last[place])
            last.push_back(first + place);
    return count == 0 ? before : last;
}

Launch launch_of(const libcuda::KernelNode &kernel) {
    Launch launch;
    launch.function = kernel.function != 0 ? kernel.function : kernel.kernel;
    launch.parameters = kernel.parameters;
    launch.extra = kernel.parameters != nullptr ? nullptr : kernel.extra;
    launch.set_sizes(kernel.grid, kernel.block);
    return launch;
}

} // namespace tcuda::watch
