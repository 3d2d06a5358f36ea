// A stand-in for CUPTI and for the driver. A test tells the functions named stub_... what the driver would say, and makes
// calls of the driver happen.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace {

using Handle = std::uintptr_t;
using Callback = void (*)(void *, int, std::uint32_t, const void *);

struct ApiCall {
    int site;
    const char *function_name;
    const void *parameters;
    void *result;
    const char *symbol_name;
    Handle context;
    std::uint32_t context_number;
    std::uint64_t *correlation_data;
    std::uint32_t correlation;
};
struct Resource {
    Handle context, stream;
    const void *description;
};
struct SubscriberParameters {
    std::size_t size;
    const char *name;
    char *other_name;
    std::size_t other_name_size;
};
struct Stream {
    Handle context;
    unsigned flags;
    std::uint64_t capture;
};

// A node that writes `size` bytes from `target` on, a kernel of the function `target`, or the child graph `target`.
struct Node {
    Handle handle;
    int type;
    std::uintptr_t target;
    std::size_t size;
};
struct MemsetParameters {
    std::uintptr_t target;
    std::size_t pitch;
    unsigned value, element_size;
    std::size_t width, height;
    Handle context;
};
struct MemcpyEnd {
    std::size_t x, y, z, level;
    int memory_type;
    std::uintptr_t host, device, array, reserved;
    std::size_t pitch, height;
};
struct MemcpyParameters {
    MemcpyEnd source, target;
    std::size_t width, height, depth;
};

struct State {
    std::uint32_t version = 130001;
    std::uint32_t newest_id = 1023; // a library refuses the ids that it does not know
    int subscribe_status = 0;
    Callback callback = nullptr;
    int subscriptions = 0; // since the beginning
    std::set<std::pair<int, std::uint32_t>> enabled;
    std::map<Handle, int> devices; // by context
    std::map<Handle, Stream> streams;
    std::map<unsigned long long, int> memory; // the type of the memory at an address
    std::map<unsigned long long, std::size_t> sizes; // of the memory that begins at an address
    std::map<Handle, std::vector<std::pair<std::size_t, std::size_t>>> functions; // offsets and sizes of parameters
    std::map<Handle, std::vector<Node>> graphs;
    int questions = 0;
    int invalidated = 0; // how often a question has invalidated a capture
    void (*meanwhile)() = nullptr; // called in the next question for the flags of a stream
} state;

const Node *node_of(Handle handle) {
    for (const auto &[graph, nodes] : state.graphs)
        for (const Node &node : nodes)
            if (node.handle == handle)
                return &node;
    return nullptr;
}

thread_local std::vector<Handle> contexts;
constexpr Handle subscriber = 0x51;

bool enabled(int domain, std::uint32_t id) {
    return state.callback != nullptr && state.enabled.count({domain, id}) != 0;
}

} // namespace

extern "C" {

// CUPTI

int cuptiGetVersion(std::uint32_t *version) {
    *version = state.version;
    return 0;
}

int cuptiSubscribe_v2(Handle *made, Callback callback, void *, SubscriberParameters *parameters) {
    const int status = state.callback != nullptr ? 39 : state.subscribe_status;
    if (status == 39 && parameters != nullptr && parameters->other_name != nullptr)
        std::strncpy(parameters->other_name, "CUPTI for a profiler", parameters->other_name_size);
    if (status != 0)
        return status;
    state.callback = callback;
    ++state.subscriptions;
    *made = subscriber;
    return 0;
}

int cuptiSubscribe(Handle *made, Callback callback, void *user) { return cuptiSubscribe_v2(made, callback, user, nullptr); }

int cuptiEnableCallback(std::uint32_t enable, Handle handle, int domain, std::uint32_t id) {
    if (handle != subscriber || state.callback == nullptr || id > state.newest_id)
        return 1;
    if (enable != 0)
        state.enabled.insert({domain, id});
    else
        state.enabled.erase({domain, id});
    return 0;
}

int cuptiUnsubscribe(Handle handle) {
    if (handle != subscriber || state.callback == nullptr)
        return 1;
    state.callback = nullptr;
    return 0;
}

int cuptiGetResultString(int status, const char **text) {
    *text = status == 998 ? "the stand-in says no" : nullptr;
    return 0;
}

// The driver

int cuCtxGetDevice(int *device) {
    ++state.questions;
    if (contexts.empty() || state.devices.count(contexts.back()) == 0)
        return 201;
    *device = state.devices[contexts.back()];
    return 0;
}

int cuCtxPushCurrent_v2(Handle context) {
    contexts.push_back(context);
    return 0;
}

int cuCtxPopCurrent_v2(Handle *context) {
    *context = contexts.back();
    contexts.pop_back();
    return 0;
}

int cuStreamGetCtx(Handle stream, Handle *context) {
    ++state.questions;
    const auto known = state.streams.find(stream);
    if (known == state.streams.end())
        return 400;
    if (known->second.capture != 0) {
        ++state.invalidated;
        return 901;
    }
    *context = known->second.context;
    return 0;
}

int cuStreamGetFlags(Handle stream, unsigned *flags) {
    ++state.questions;
    *flags = state.streams.at(stream).flags;
    if (state.meanwhile != nullptr)
        std::exchange(state.meanwhile, nullptr)();
    return 0;
}

int cuStreamGetCaptureInfo(Handle stream, int *status, std::uint64_t *capture) {
    ++state.questions;
    const auto known = state.streams.find(stream);
    *capture = known == state.streams.end() ? 0 : known->second.capture;
    *status = *capture != 0;
    return 0;
}

int cuPointerGetAttribute(void *value, int attribute, unsigned long long address) {
    ++state.questions;
    const auto known = state.memory.find(address);
    if (known == state.memory.end())
        return 1;
    if (attribute == 2)
        *static_cast<unsigned *>(value) = static_cast<unsigned>(known->second);
    else
        *static_cast<int *>(value) = 0;
    return 0;
}

int cuMemGetAddressRange_v2(unsigned long long *begin, std::size_t *size, unsigned long long address) {
    const auto known = state.sizes.find(address);
    if (known == state.sizes.end())
        return 1;
    *begin = address;
    *size = known->second;
    return 0;
}

int cuFuncGetParamInfo(Handle function, std::size_t index, std::size_t *offset, std::size_t *size) {
    const auto known = state.functions.find(function);
    if (known == state.functions.end() || index >= known->second.size())
        return 1;
    *offset = known->second[index].first;
    *size = known->second[index].second;
    return 0;
}

int cuGraphGetNodes(Handle graph, Handle *nodes, std::size_t *count) {
    const std::vector<Node> &known = state.graphs[graph];
    for (std::size_t place = 0; nodes != nullptr && place < *count && place < known.size(); ++place)
        nodes[place] = known[place].handle;
    *count = known.size();
    return 0;
}

int cuGraphGetEdges(Handle, Handle *, Handle *, std::size_t *count) {
    *count = 0;
    return 0;
}

int cuGraphNodeGetType(Handle node, int *type) {
    const Node *const known = node_of(node);
    if (known == nullptr)
        return 1;
    *type = known->type;
    return 0;
}

int cuGraphMemsetNodeGetParams(Handle node, MemsetParameters *parameters) {
    const Node *const known = node_of(node);
    *parameters = {known->target, 0, 0, 1, known->size, 1, 0};
    return 0;
}

int cuGraphMemcpyNodeGetParams(Handle node, MemcpyParameters *parameters) {
    const Node *const known = node_of(node);
    *parameters = MemcpyParameters{};
    parameters->source.memory_type = parameters->target.memory_type = 2;
    parameters->target.device = known->target;
    parameters->source.device = known->target + 4096;
    parameters->width = known->size;
    parameters->height = parameters->depth = 1;
    return 0;
}

int cuGraphChildGraphNodeGetGraph(Handle node, Handle *graph) {
    *graph = node_of(node)->target;
    return 0;
}

// The test

void stub_reset() { state = State(); }
void stub_set_version(std::uint32_t version) { state.version = version; }
void stub_set_newest_id(std::uint32_t id) { state.newest_id = id; }
void stub_set_subscribe_status(int status) { state.subscribe_status = status; }
void stub_add_context(Handle context, int device) { state.devices[context] = device; }
void stub_set_stream(Handle stream, Handle context, unsigned flags, std::uint64_t capture) {
    state.streams[stream] = {context, flags, capture};
}
void stub_set_memory(unsigned long long address, int type) { state.memory[address] = type; }
void stub_set_memory_size(unsigned long long address, std::size_t size) { state.sizes[address] = size; }
void stub_add_parameter(Handle function, std::size_t offset, std::size_t size) {
    state.functions[function].push_back({offset, size});
}
void stub_add_node(Handle graph, Handle node, int type, std::uintptr_t target, std::size_t size) {
    state.graphs[graph].push_back({node, type, target, size});
}
void stub_meanwhile(void (*function)()) { state.meanwhile = function; }
int stub_invalidated() { return state.invalidated; }
int stub_questions() { return state.questions; }
int stub_subscribed() { return state.callback != nullptr; }
int stub_subscriptions() { return state.subscriptions; }
std::size_t stub_enabled_count() { return state.enabled.size(); }
int stub_is_enabled(int domain, std::uint32_t id) { return state.enabled.count({domain, id}) != 0; }
void *stub_callback() { return reinterpret_cast<void *>(state.callback); }

// Lets a call of the driver begin (1), end (2), or both (3). Returns how many callbacks there were.
int stub_call(std::uint32_t id, Handle context, const char *symbol, const void *parameters, int status, int sides) {
    int told = 0;
    ApiCall call{};
    call.parameters = parameters;
    call.symbol_name = symbol;
    call.context = context;
    contexts.push_back(context);
    for (int site = 0; site < 2; ++site) {
        if ((sides & (1 << site)) == 0 || !enabled(1, id))
            continue;
        call.site = site;
        call.result = site == 1 ? &status : nullptr;
        state.callback(nullptr, 1, id, &call);
        ++told;
    }
    contexts.pop_back();
    return told;
}

int stub_resource(std::uint32_t id, Handle context) {
    if (!enabled(3, id))
        return 0;
    const Resource resource{context, 0, nullptr};
    state.callback(nullptr, 3, id, &resource);
    return 1;
}
}
