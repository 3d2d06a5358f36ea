// The driver of driver_stub.cpp with a graph whose nodes can be changed.
//
// The graph 3000 has two kernels, a copy, a fill and the child graph 3001, which has a kernel. The first kernel has a
// pointer, a structure of 20 bytes and an int; the others have a pointer. The stub notes the addresses of a node that is
// set, and refuses a change of the node whose number it was told.
#include "driver_stub.cpp"

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
    Word width, height, context;
};

static const Word graph_nodes[] = {30, 31, 32, 33, 34}, child_nodes[] = {35};
static const int node_types[] = {0, 0, 1, 2, 4, 0};

static Word pointer_of[6] = {0x100000, 0x100010, 0, 0, 0, 0x100020};
static Word structure[3] = {0x200000, 0x100100, 0x100108}; // the last number is only 4 bytes of the structure
static int number = 0x100000;
static Copy copy;
static Fill fill;
static Word refused = 0;
static int status_of_update = 0;
static bool in_buffer = false;
static unsigned enabled[6] = {1, 1, 1, 1, 1, 1};

static void *first[] = {&pointer_of[0], structure, &number}, *second[] = {&pointer_of[1]}, *inner[] = {&pointer_of[5]};
static const Word sizes[] = {8, 20, 4};

// The arguments of the second kernel in one buffer, behind a number.
static Word in_one[] = {7, 0x100010}, bytes_in_one = sizeof in_one;
static void *buffer[] = {(void *)2, &bytes_in_one, (void *)1, in_one, nullptr};

extern "C" void stub_refuse(Word node) { refused = node; }
extern "C" void stub_fail_update(int status) { status_of_update = status; }
extern "C" void stub_use_buffer() { in_buffer = true; }
extern "C" void stub_prepare() {
    copy.source.type = 2, copy.source.device = 0x1000ff;
    copy.target.type = 1, copy.target.host = 0x300000, copy.target.device = 0x100000;
    copy.width = 8;
    fill.target = 0x100200, fill.value = 0x100000, fill.width = 16;
}
extern "C" Word stub_word(int which) {
    const Word words[] = {pointer_of[0], structure[0],        structure[1],       structure[2] & 0xffffffff, Word(number),
                          pointer_of[1], copy.source.device, copy.target.device, fill.target,               fill.value,
                          pointer_of[5]};
    return words[which];
}

CALL(cuGraphGetNodes, (Word graph, Word *nodes, Word *count),
     if (graph != 3000 && graph != 3001) return 1;
     *count = graph == 3000 ? 5 : 1;
     if (nodes != nullptr) std::memcpy(nodes, graph == 3000 ? graph_nodes : child_nodes, *count * sizeof(Word)))
CALL(cuGraphNodeGetType, (Word node, int *type), *type = node_types[node - 30])
CALL(cuGraphKernelNodeGetParams_v2, (Word node, Kernel *kernel),
     if (node_types[node - 30] != 0) return 1;
     kernel->function = node == 30 ? 3 : 0;
     kernel->kernel = node == 30 ? 0 : 4;
     kernel->grid[0] = 17;
     kernel->parameters = node == 30 ? first : node == 31 ? second : inner;
     kernel->extra = node == 31 && in_buffer ? buffer : nullptr;
     if (kernel->extra != nullptr) kernel->parameters = nullptr)
CALL(cuFuncGetParamInfo, (Word function, Word index, Word *offset, Word *size),
     if (function != 3 || index > 2) return 1;
     *offset = 0;
     *size = sizes[index])
CALL(cuKernelGetParamInfo, (Word kernel, Word index, Word *offset, Word *size),
     if (kernel != 4 || index > 0) return 1;
     *offset = 0;
     *size = 8)
CALL(cuGraphMemcpyNodeGetParams, (Word, Copy *to), *to = copy)
CALL(cuGraphMemsetNodeGetParams, (Word, Fill *to), *to = fill)
CALL(cuGraphChildGraphNodeGetGraph, (Word, Word *graph), *graph = 3001)

CALL(cuGraphKernelNodeSetParams_v2, (Word node, const Kernel *kernel),
     if (node == refused || kernel->grid[0] != 17) return 1;
     if (node == 31 && in_buffer) {
         if (kernel->parameters != nullptr || kernel->extra[0] != (void *)1 || kernel->extra[2] != (void *)2) return 1;
         std::memcpy(in_one, kernel->extra[1], *static_cast<Word *>(kernel->extra[3]));
         return noted("buffer", {in_one[0], in_one[1]});
     }
     if (kernel->extra != nullptr) return 1;
     noted("kernel", {node});
     std::memcpy(&pointer_of[node - 30], kernel->parameters[0], 8);
     if (node == 30) {
         std::memcpy(structure, kernel->parameters[1], 20);
         std::memcpy(&number, kernel->parameters[2], 4);
     })
CALL(cuGraphMemcpyNodeSetParams, (Word node, const Copy *from), if (node == refused) return 1; noted("copy", {node});
     copy = *from)
CALL(cuGraphMemsetNodeSetParams, (Word node, const Fill *from), if (node == refused) return 1; noted("fill", {node});
     fill = *from)

struct Update {
    int result;
    Word node, from;
};
CALL(cuGraphExecUpdate_v2, (Word exec, Word graph, Update *update), noted("update", {exec, graph});
     if (status_of_update != 0) {
         update->result = 5;
         update->node = 32;
         return status_of_update;
     })
CALL(cuGraphNodeSetEnabled, (Word, Word node, unsigned state), if (node_types[node - 30] == 4) return 1;
     enabled[node - 30] = state)
CALL(cuGraphNodeGetEnabled, (Word, Word node, unsigned *state), if (node_types[node - 30] == 4) return 1;
     *state = enabled[node - 30])

UNUSED(cuStreamGetCaptureInfo_v2)
UNUSED(cuStreamUpdateCaptureDependencies)
UNUSED(cuGraphInstantiateWithFlags)
UNUSED(cuGraphExecDestroy)
UNUSED(cuGraphLaunch)
UNUSED(cuGraphAddKernelNode_v2)
UNUSED(cuGraphExecKernelNodeSetParams_v2)
UNUSED(cuStreamBeginCapture_v2)
UNUSED(cuStreamEndCapture)
UNUSED(cuGraphDestroy)
