#include "sanitizer/_cpp/watch/graph_watch.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>

#include "driver/status.hpp"
#include "sanitizer/_cpp/watch/content_reader.hpp"

namespace tcuda::watch {
namespace {

using races::GraphPlan;
using races::RaceDetector;

constexpr int capture_active = 1; // CU_STREAM_CAPTURE_STATUS_ACTIVE

// The place in a capture at which a stream is.
struct CapturePlace {
    libcuda::Graph graph;
    libcuda::CaptureId id;
    libcuda::GraphNode newest; // the node that the next node of the stream depends on
};

// Nothing if the stream does not capture, or if its next node depends on several nodes.
std::optional<CapturePlace> place_of(Stream stream, const GraphQuestions &questions) {
    int status = 0;
    CapturePlace place{};
    const libcuda::GraphNode *nodes = nullptr;
    const void *edges = nullptr;
    std::size_t count = 0;
    if (questions.capture_info != nullptr) {
        if (questions.capture_info(stream, &status, &place.id, &place.graph, &nodes, &edges, &count) != success)
            return std::nullopt;
    } else if (questions.capture_info_without_edges == nullptr ||
               questions.capture_info_without_edges(stream, &status, &place.id, &place.graph, &nodes, &count) !=
                   success) {
        return std::nullopt;
    }
    if (status != capture_active || place.graph == 0 || count != 1)
        return std::nullopt;
    place.newest = *nodes;
    return place;
}

std::unique_ptr<GraphPlan> plan_of(const GraphContent &content, RaceDetector &detector) {
    std::vector<RaceDetector::NamedNode> nodes;
    nodes.reserve(content.nodes.size());
    for (const GraphContent::Node &node : content.nodes)
        nodes.push_back({node.kept.name, node.kept.stack, node.kept.uses.named(), node.dependencies});
    return detector.add_graph(nodes);
}

bool same_types(const GraphContent &left, const GraphContent &right) {
    if (left.nodes.size() != right.nodes.size())
        return false;
    for (std::size_t place = 0; place < left.nodes.size(); ++place)
        if (left.nodes[place].type != right.nodes[place].type)
            return false;
    return true;
}

} // namespace

// Every function takes the mutex of the executable graph.
class GraphWatch::Executable {
public:
    Executable(RaceDetector &detector, GraphContent content)
        : detector_(detector), content_(std::move(content)), plan_(plan_of(content_, detector)) {
        list_nodes();
    }
    ~Executable() { detector_.remove_graph(*plan_); }
    Executable(const Executable &) = delete;
    Executable &operator=(const Executable &) = delete;

    // Gives the nodes the parameters of another graph. The nodes keep the handles of the graph that was instantiated.
    void update(GraphContent content) {
        const std::lock_guard lock(mutex_);
        if (same_types(content, content_)) {
            for (std::size_t place = 0; place < content.nodes.size(); ++place)
                content.nodes[place].handle = content_.nodes[place].handle;
            content.children = content_.children;
        } else {
            disabled_.clear();
        }
        auto plan = plan_of(content, detector_);
        detector_.follow(*plan, *plan_);
        detector_.remove_graph(*plan_);
        plan_ = std::move(plan);
        content_ = std::move(content);
        list_nodes();
        for (const std::size_t place : disabled_)
            tell_uses(place);
    }

    void set_node(libcuda::GraphNode handle, const NamedOperation &operation) {
        const std::lock_guard lock(mutex_);
        const auto known = places_.find(handle);
        if (known == places_.end())
            return;
        content_.nodes[known->second].kept.uses = KeptUses(operation.uses);
        tell_uses(known->second);
    }

    void set_child(libcuda::GraphNode handle, const GraphContent &child) {
        const std::lock_guard lock(mutex_);
        for (const GraphContent::Child &known : content_.children) {
            if (known.handle != handle)
                continue;
            for (std::size_t number = 0; number < known.count; ++number) {
                const std::size_t place = known.first + number;
                GraphContent::Node &node = content_.nodes[place];
                const bool fits = known.count == child.nodes.size();
                node.kept.uses = fits ? child.nodes[number].kept.uses : KeptUses();
                node.event = fits ? child.nodes[number].event : 0;
                tell_uses(place);
            }
        }
        list_nodes();
    }

    void set_event(libcuda::GraphNode handle, libcuda::Event event) {
        const std::lock_guard lock(mutex_);
        const auto known = places_.find(handle);
        if (known == places_.end())
            return;
        content_.nodes[known->second].event = event;
        list_nodes();
    }

    void enable(libcuda::GraphNode handle, bool enabled) {
        const std::lock_guard lock(mutex_);
        const auto known = places_.find(handle);
        if (known == places_.end() || is_enabled(known->second) == enabled)
            return;
        if (enabled)
            disabled_.erase(known->second);
        else
            disabled_.insert(known->second);
        tell_uses(known->second);
    }

    Races launch(const WatchedStream &stream, StackId stack) {
        const std::lock_guard lock(mutex_);
        // The detector orders whole launches and events, but no event within a launch. So the launch as a whole waits,
        // and is recorded as a whole: no right program is accused.
        for (const libcuda::Event event : waits_)
            detector_.event_waited(event, stream.device, stream.key, stack);
        Races found = detector_.launch(*plan_, stream.device, stream.key, stack);
        for (const libcuda::Event event : records_)
            detector_.event_recorded(event, stream.device, stream.key, stack);
        return found;
    }

    bool calls_host() {
        const std::lock_guard lock(mutex_);
        return std::any_of(content_.nodes.begin(), content_.nodes.end(), [](const GraphContent::Node &node) {
            return node.kept.name == RaceDetector::host_function;
        });
    }

    GraphContent content() {
        const std::lock_guard lock(mutex_);
        GraphContent copy = content_;
        for (const std::size_t place : disabled_)
            copy.nodes[place].kept.uses = {};
        return copy;
    }

private:
    bool is_enabled(std::size_t place) const { return disabled_.count(place) == 0; }

    void tell_uses(std::size_t place) {
        std::vector<RaceDetector::NamedUse> uses;
        if (is_enabled(place))
            uses = content_.nodes[place].kept.uses.named();
        detector_.set_node(*plan_, place, {uses.data(), uses.size()});
    }

    void list_nodes() {
        places_.clear();
        waits_.clear();
        records_.clear();
        for (std::size_t place = 0; place < content_.nodes.size(); ++place) {
            const GraphContent::Node &node = content_.nodes[place];
            places_.emplace(node.handle, place);
            if (node.event != 0)
                (node.type == libcuda::node_type_wait ? waits_ : records_).push_back(node.event);
        }
    }

    std::mutex mutex_;
    RaceDetector &detector_;
    GraphContent content_;
    std::unique_ptr<GraphPlan> plan_;
    std::unordered_map<libcuda::GraphNode, std::size_t> places_;
    std::unordered_set<std::size_t> disabled_; // places
    std::vector<libcuda::Event> waits_, records_;
};

GraphWatch::GraphWatch(RaceDetector &detector, LaunchUses &launches, const GraphQuestions &questions)
    : detector_(detector), launches_(launches), questions_(questions) {}
GraphWatch::~GraphWatch() = default;

// Captures

void GraphWatch::captured(const WatchedStream &stream, const NamedOperation &operation, StackId stack) {
    remember(stream, operation, stack, nullptr);
}

void GraphWatch::launch_captured(libcuda::GraphExec executable, const WatchedStream &stream, StackId stack) {
    if (const std::shared_ptr<Executable> known = find(executable))
        remember(stream, {}, stack, std::make_shared<GraphContent>(known->content()));
}

void GraphWatch::remember(const WatchedStream &stream, const NamedOperation &operation, StackId stack,
                          std::shared_ptr<const GraphContent> child) {
    const std::optional<CapturePlace> place = place_of(stream.handle, questions_);
    if (!place)
        return;
    auto captured = std::make_shared<CapturedNodes::Captured>();
    captured->node = {std::string(operation.name), stack, KeptUses(operation.uses)};
    captured->child = std::move(child);
    captured_.add(place->graph, place->id, place->newest, std::move(captured));
}

// Graphs

void GraphWatch::cloned(libcuda::Graph clone, libcuda::Graph original) {
    captured_.forget(clone); // a graph that was here before may be gone
    if (questions_.find_in_clone == nullptr)
        return;
    for (const auto &[node, known] : captured_.nodes_of(original)) {
        libcuda::GraphNode copy = 0;
        if (questions_.find_in_clone(&copy, node, clone) == success)
            captured_.add(clone, 0, copy, known);
    }
}

void GraphWatch::child_added(libcuda::GraphNode node, libcuda::Graph graph, libcuda::Graph child) {
    auto captured = std::make_shared<CapturedNodes::Captured>();
    captured->child = std::make_shared<GraphContent>(read(child));
    captured_.add(graph, captured_.capture_of(graph), node, std::move(captured));
}

void GraphWatch::conditional_added(libcuda::GraphNode node, libcuda::Graph graph, std::vector<libcuda::Graph> bodies) {
    auto captured = std::make_shared<CapturedNodes::Captured>();
    captured->bodies = std::move(bodies);
    // An earlier node with this handle may have had bodies that are gone.
    captured_.forget_node(node);
    captured_.add(graph, captured_.capture_of(graph), node, std::move(captured));
}

void GraphWatch::graph_about_to_be_destroyed(libcuda::Graph graph) {
    const auto nodes = captured_.nodes_of(graph);
    captured_.forget(graph);
    for (const auto &[node, known] : nodes)
        for (const libcuda::Graph body : known->bodies)
            graph_about_to_be_destroyed(body);
}

GraphContent GraphWatch::read(libcuda::Graph graph) {
    return ContentReader(questions_, launches_, captured_).read(graph);
}

// Executable graphs

void GraphWatch::instantiated(libcuda::GraphExec executable, libcuda::Graph graph) {
    put(executable, std::make_shared<Executable>(detector_, read(graph)));
}

void GraphWatch::updated(libcuda::GraphExec executable, libcuda::Graph graph) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->update(read(graph));
    else
        instantiated(executable, graph);
}

void GraphWatch::node_set(libcuda::GraphExec executable, libcuda::GraphNode node) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_node(node, {});
}

void GraphWatch::kernel_node_set(libcuda::GraphExec executable, libcuda::GraphNode node,
                                 const libcuda::KernelNode &kernel) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_node(node, launches_.uses_of(launch_of(kernel)));
}

void GraphWatch::memcpy_node_set(libcuda::GraphExec executable, libcuda::GraphNode node,
                                 const libcuda::MemcpyNode &copy) {
    std::vector<RaceDetector::NamedUse> uses;
    read_copy(copy, &uses);
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_node(node, {copy_name, {uses.data(), uses.size()}});
}

void GraphWatch::memset_node_set(libcuda::GraphExec executable, libcuda::GraphNode node,
                                 const libcuda::MemsetNode &fill) {
    std::vector<RaceDetector::NamedUse> uses;
    read_fill(fill, &uses);
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_node(node, {fill_name, {uses.data(), uses.size()}});
}

void GraphWatch::child_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, libcuda::Graph child) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_child(node, read(child));
}

void GraphWatch::event_node_set(libcuda::GraphExec executable, libcuda::GraphNode node, libcuda::Event event) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->set_event(node, event);
}

void GraphWatch::enabled(libcuda::GraphExec executable, libcuda::GraphNode node, bool enabled) {
    if (const std::shared_ptr<Executable> known = find(executable))
        known->enable(node, enabled);
}

bool GraphWatch::may_call_host(libcuda::GraphExec executable) {
    const std::shared_ptr<Executable> known = find(executable);
    return known == nullptr || known->calls_host();
}

GraphWatch::Races GraphWatch::launched(libcuda::GraphExec executable, const WatchedStream &stream, StackId stack) {
    std::shared_ptr<Executable> known = find(executable);
    if (known == nullptr) {
        known = std::make_shared<Executable>(detector_, GraphContent());
        put(executable, known);
    }
    return known->launch(stream, stack);
}

void GraphWatch::executable_about_to_be_destroyed(libcuda::GraphExec executable) { put(executable, nullptr); }

GraphWatch::Sizes GraphWatch::sizes() {
    const std::size_t captured = captured_.size();
    const std::lock_guard lock(mutex_);
    return {executables_.size(), captured};
}

// Replaces an executable graph, which a launch in another thread may still use.
void GraphWatch::put(libcuda::GraphExec executable, std::shared_ptr<Executable> known) {
    std::shared_ptr<Executable> before; // ends after the mutex is free
    const std::lock_guard lock(mutex_);
    if (known == nullptr) {
        const auto place = executables_.find(executable);
        if (place == executables_.end())
            return;
        before = std::move(place->second);
        executables_.erase(place);
        return;
    }
    std::shared_ptr<Executable> &place = executables_[executable];
    before = std::move(place);
    place = std::move(known);
}

std::shared_ptr<GraphWatch::Executable> GraphWatch::find(libcuda::GraphExec executable) {
    const std::lock_guard lock(mutex_);
    const auto known = executables_.find(executable);
    return known == executables_.end() ? nullptr : known->second;
}

} // namespace tcuda::watch
