// The driver of driver_stub.cpp with calls for graphs: one capture, whose graph is 1000, on the stream 11. The stub notes
// the calls for conditional nodes with their arguments.
#include "driver_stub.cpp"

using Word = std::size_t;

static int capture_status = 1;
static Word newest = 501; // the node after which the stream 11 goes on
static Word body = 1001;

extern "C" void stub_capture_status(int status) { capture_status = status; }

// A launch on the stream 11 is captured.
extern "C" int stub_captured(void **arguments, unsigned) {
    newest = 502;
    return noted("kernel", {*static_cast<Word *>(arguments[0]), *static_cast<Word *>(arguments[1])});
}

CALL(cuStreamGetCaptureInfo_v2,
     (Word stream, int *status, Pointer *id, Word *graph, const Word **before, Word *count),
     *status = stream == 11 ? capture_status : 0; *id = 77; *graph = 1000; *before = &newest; *count = 1)
CALL(cuStreamUpdateCaptureDependencies, (Word stream, const Word *nodes, Word count, unsigned flags),
     return noted("dependencies", {stream, *nodes, count, flags}))
CALL(cuStreamBeginCapture_v2, (Word stream, int mode), return noted("begin", {stream, Word(mode)}))
CALL(cuStreamEndCapture, (Word stream, Word *graph), *graph = 2000; return noted("end", {stream}))
CALL(cuGraphDestroy, (Word graph), return noted("destroy", {graph}))
CALL(cuGraphInstantiateWithFlags, (Word * exec, Word graph, Pointer flags),
     *exec = 3000; return noted("instantiate", {graph, Word(flags), Word(mode_of_thread)}))
CALL(cuGraphExecDestroy, (Word exec), return noted("destroy exec", {exec}))
UNUSED(cuGraphLaunch)
UNUSED(cuGraphMemcpyNodeGetParams)
CALL(cuGraphMemsetNodeGetParams, (Word, Word *fill), *fill = 0)
UNUSED(cuGraphChildGraphNodeGetGraph)
CALL(cuFuncGetParamInfo, (Word, Word index, Word *offset, Word *size),
     if (index != 0) return 1;
     *offset = 0; *size = 8)
UNUSED(cuKernelGetParamInfo)
UNUSED(cuGraphAddKernelNode_v2)
UNUSED(cuGraphExecKernelNodeSetParams_v2)

// The graph 2000: a kernel with a function, a kernel of a library, a fill, and a record and a wait of the event 9.
static const Word graph_nodes[] = {10, 11, 12, 13, 14};
static const int node_types[] = {0, 0, 2, 7, 6};
static const Word edges[][2] = {{10, 12}, {11, 12}, {12, 14}};

CALL(cuGraphGetNodes, (Word graph, Word *nodes, Word *count),
     if (graph != 2000) return 1;
     if (nodes != nullptr) std::memcpy(nodes, graph_nodes, sizeof graph_nodes);
     *count = 5)
CALL(cuGraphNodeGetType, (Word node, int *type), *type = node_types[node - 10])
struct Kernel {
    Word function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
    Word kernel, context;
};
static Word argument = 0; // of the first kernel
static void *arguments_of_kernel[] = {&argument};
extern "C" void stub_argument(Word value) { argument = value; }
CALL(cuGraphKernelNodeGetParams_v2, (Word node, Kernel *kernel),
     if (node > 11) return 1;
     kernel->function = node == 10 ? 3 : 0;
     kernel->parameters = node == 10 ? arguments_of_kernel : nullptr;
     kernel->kernel = 4)
CALL(cuFuncGetName, (const char **name, Word function), if (function != 3) return 1; *name = "of_function")
CALL(cuKernelGetName, (const char **name, Word kernel), if (kernel != 4) return 1; *name = "of_kernel")
CALL(cuGraphEventRecordNodeGetEvent, (Word, Word *event), *event = 9)
CALL(cuGraphEventWaitNodeGetEvent, (Word, Word *event), *event = 9)
CALL(cuGraphGetEdges_v2, (Word, Word *from, Word *to, const void *data, Word *count),
     for (Word edge = 0; from != nullptr && edge < 3; ++edge) {
         if (data == nullptr)
             return 918; // CUDA_ERROR_LOSSY_QUERY
         from[edge] = edges[edge][0];
         to[edge] = edges[edge][1];
     }
     *count = 3)
#ifndef WITHOUT_NUMBERS
CALL(cuGraphExecGetId, (Word, unsigned *number), *number = 6)
CALL(cuGraphNodeGetToolsId, (Word node, Pointer *number), *number = Pointer(5) << 32 | node)
#endif

CALL(cuGraphConditionalHandleCreate, (Word * handle, Word graph, Word context, unsigned value, unsigned flags),
     *handle = 88; return noted("handle", {graph, context, value, flags}))
struct Parameters {
    int type, reserved[3];
    Word handle;
    int kind;
    unsigned count;
    Word *bodies;
    Word context;
    char rest[256 - 48];
};
static_assert(sizeof(Parameters) == 256);
CALL(cuGraphAddNode, (Word * node, Word graph, const Word *before, Word count, Parameters *parameters),
     *node = 503; parameters->bodies = &body;
     return noted("node", {graph, *before, count, Word(parameters->type), parameters->handle, Word(parameters->kind),
                           parameters->count, parameters->context}))
CALL(cuStreamBeginCaptureToGraph, (Word stream, Word graph, const Word *before, const void *data, Word count, int mode),
     return noted("capture", {stream, graph, Word(before == nullptr && data == nullptr), count, Word(mode)}))
CALL(cuModuleLoadData, (Word * module, const char *image), *module = 600 + current_context;
     return noted("load", {Word(std::strstr(image, "cudaGraphSetConditional") != nullptr), Word(mode_of_thread)}))
CALL(cuModuleGetFunction, (Word * function, Word module, const char *name),
     noted(name, {module});
     *function = reinterpret_cast<Word>(stub_captured))
