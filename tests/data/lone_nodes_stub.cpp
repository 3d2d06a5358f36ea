// The driver of driver_stub.cpp with a graph that has a node of each type, and with a capture whose graph grows.
//
// The nodes of the graph 4000 have the numbers from 40 on. The stub notes the nodes that are added to the graph 4100,
// with a few of their parameters. The stream 11 captures into the graph 5000, and the stream 12 into the graph 6000.
#include "driver_stub.cpp"

#include <vector>

using Word = std::size_t;

struct Kernel {
    Word function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    Word kernel, context;
};
struct End {
    Word x, y, z, level;
    int type;
    Word host, device, array, reserved, pitch, height;
};
struct Copy {
    End source, target;
    Word width, height, depth;
};
struct Fill {
    Word target, pitch;
    unsigned value, size;
    Word width, height;
};
struct Host {
    void (*function)(void *);
    void *data;
};

// A kernel, a copy, a fill, a function of the host, a child graph, no work, a wait, a record, an allocation, a
// condition.
static const int node_types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 13};
static const Word node_count = sizeof node_types / sizeof *node_types;

static Word first = 0x300000, second = 0x200000;
static void *arguments[] = {&first, &second};

static std::vector<Word> captured[2]; // the nodes of the captures of the streams 11 and 12
static int capture_status = 1;

extern "C" void stub_capture(int which, Word node) { captured[which].push_back(node); }
extern "C" void stub_capture_first(int which, Word node) { captured[which].insert(captured[which].begin(), node); }
extern "C" void stub_capture_status(int status) { capture_status = status; }

static int write(const std::vector<Word> &nodes, Word *to, Word *count) {
    *count = nodes.size();
    for (Word place = 0; to != nullptr && place < nodes.size(); ++place)
        to[place] = nodes[place];
    return 0;
}

CALL(cuStreamGetCaptureInfo_v2, (Word stream, int *status, Pointer *id, Word *graph, const Word **before, Word *count),
     if (before != nullptr || count != nullptr) return 918; // CUDA_ERROR_LOSSY_QUERY
         *status = stream == 11 || stream == 12 ? capture_status : 0; *id = 77; *graph = stream == 11 ? 5000 : 6000)
CALL(cuGraphGetNodes, (Word graph, Word *nodes, Word *count),
     if (graph == 5000 || graph == 6000) return write(captured[graph == 6000], nodes, count);
     if (graph == 4100) return write({40, 41, 42}, nodes, count); if (graph != 4000) return 1; std::vector<Word> all;
     for (Word place = 0; place < node_count; ++place) all.push_back(40 + place); return write(all, nodes, count))
CALL(cuGraphNodeGetType, (Word node, int *type), *type = node_types[node - 40])
CALL(cuGraphKernelNodeGetParams_v2, (Word node, Kernel *kernel), if (node != 40) return 1; kernel->function = 3;
     kernel->grid[0] = 17; kernel->parameters = arguments)
CALL(cuFuncGetParamInfo, (Word, Word index, Word *offset, Word *size), if (index > 1) return 1; *offset = 8 * index;
     *size = 8)
CALL(cuGraphMemcpyNodeGetParams, (Word, Copy *copy), copy->source.type = 2; copy->source.device = 0x500000;
     copy->target.type = 2; copy->target.device = 0x400000; copy->width = 24)
CALL(cuGraphMemsetNodeGetParams, (Word, Fill *fill), fill->target = 0x600000; fill->width = 8)
CALL(cuGraphHostNodeGetParams, (Word, Host *host), host->data = reinterpret_cast<void *>(0x9))
CALL(cuGraphChildGraphNodeGetGraph, (Word node, Word *graph), if (node != 44) return 1; *graph = 4001)
CALL(cuGraphEventRecordNodeGetEvent, (Word, Word *event), *event = 9)
CALL(cuGraphEventWaitNodeGetEvent, (Word, Word *event), *event = 8)

CALL(cuGraphCreate, (Word * graph, unsigned flags), *graph = 4100; return noted("create", {flags}))
CALL(cuGraphDestroy, (Word graph), return noted("destroy", {graph}))
CALL(cuGraphAddKernelNode_v2, (Word * node, Word graph, const Word *before, Word count, const Kernel *kernel),
     *node = 50;
     return noted("kernel", {graph, Word(before == nullptr), count, kernel->grid[0],
                             *static_cast<Word *>(kernel->parameters[1])}))
CALL(cuGraphKernelNodeCopyAttributes, (Word target, Word source), return noted("attributes", {target, source}))
CALL(cuGraphAddMemcpyNode, (Word * node, Word graph, const Word *, Word count, const Copy *copy, Word context),
     *node = 50;
     return noted("copy", {graph, count, copy->source.device, copy->target.device, copy->width, context}))
CALL(cuGraphAddMemsetNode, (Word * node, Word graph, const Word *, Word count, const Fill *fill, Word context),
     *node = 50;
     return noted("fill", {graph, count, fill->target, fill->width, context}))
CALL(cuGraphAddHostNode, (Word * node, Word graph, const Word *, Word count, const Host *host), *node = 50;
     return noted("host", {graph, count, reinterpret_cast<Word>(host->data)}))
CALL(cuGraphAddEmptyNode, (Word * node, Word graph, const Word *, Word count), *node = 50;
     return noted("empty", {graph, count}))
CALL(cuGraphAddEventRecordNode, (Word * node, Word graph, const Word *, Word count, Word event), *node = 50;
     return noted("record", {graph, count, event}))
CALL(cuGraphAddEventWaitNode, (Word * node, Word graph, const Word *, Word count, Word event), *node = 50;
     return noted("wait", {graph, count, event}))

UNUSED(cuStreamUpdateCaptureDependencies)
UNUSED(cuStreamBeginCapture_v2)
UNUSED(cuStreamEndCapture)
UNUSED(cuGraphInstantiateWithFlags)
UNUSED(cuGraphExecDestroy)
UNUSED(cuGraphLaunch)
UNUSED(cuKernelGetParamInfo)
UNUSED(cuGraphExecKernelNodeSetParams_v2)
UNUSED(cuGraphGetEdges_v2)
UNUSED(cuFuncGetName)
UNUSED(cuKernelGetName)
