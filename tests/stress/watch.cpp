// The readers of launches and of graphs, with calls of several threads at once.
//
//     watch [operations per thread] [seed]
//
// The stand-in driver has `functions` functions with three pointers, and every graph has the same nodes. The program
// prints the first failure and ends with the status 1.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"
#include "sanitizer/_cpp/watch/graph_watch.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"
#include "sanitizer/_cpp/watch/launch_reader.hpp"

namespace {

using namespace tcuda;
using namespace tcuda::watch;
using kernel_uses::Kind;
using kernel_uses::KernelUse;
using kernel_uses::KernelUses;
using races::RaceDetector;

constexpr Address base = 0x7F0000000000;
constexpr std::size_t room = 4096, blocks = 16;
constexpr std::size_t functions = 24, modules = 6, executables = 5;
constexpr std::size_t nodes = 4;
constexpr int workers = 8;

std::atomic<int> analyses{0};

void expect(bool condition, const char *failure) {
    if (condition)
        return;
    std::printf("watch: %s\n", failure);
    std::exit(1);
}

// The driver: functions have the handles 1, 2, ..., and belong to the modules in turn.

int parameter_info(libcuda::Function, std::size_t index, std::size_t *offset, std::size_t *size) {
    if (index >= 3)
        return 1;
    *offset = 8 * index;
    *size = 8;
    return 0;
}

int module_of(Module *module, libcuda::Function function) {
    *module = 1 + function % modules;
    return 0;
}

// The graphs: node 4 * graph + place. The second and the third node depend on the first, the fourth on both.

int nodes_of(libcuda::Graph graph, libcuda::GraphNode *list, std::size_t *count) {
    for (std::size_t place = 0; list != nullptr && place < nodes; ++place)
        list[place] = nodes * graph + place;
    *count = nodes;
    return 0;
}

int edges_of(libcuda::Graph graph, libcuda::GraphNode *from, libcuda::GraphNode *to, void *, std::size_t *count) {
    constexpr std::size_t edges[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    for (std::size_t place = 0; from != nullptr && place < 4; ++place) {
        from[place] = nodes * graph + edges[place][0];
        to[place] = nodes * graph + edges[place][1];
    }
    *count = 4;
    return 0;
}

int type_of(libcuda::GraphNode node, int *type) {
    *type = node % nodes == 0 ? 2 : 0;
    return 0;
}

int kernel_of(libcuda::GraphNode node, libcuda::KernelNode *kernel) {
    static Address values[3] = {base, base + room, base + 2 * room};
    static void *parameters[3] = {&values[0], &values[1], &values[2]};
    kernel->function = 1 + node % functions;
    kernel->parameters = parameters;
    return 0;
}

int fill_of(libcuda::GraphNode, libcuda::MemsetNode *fill) {
    fill->target = base;
    fill->element_size = 1;
    fill->width = 64;
    fill->height = 1;
    return 0;
}

int capture_of(libcuda::Stream stream, int *status, libcuda::CaptureId *capture, libcuda::Graph *graph,
               const libcuda::GraphNode **list, const void **, std::size_t *count) {
    static thread_local libcuda::GraphNode newest;
    *status = stream % 4 == 0;
    *capture = stream;
    *graph = stream % 7;
    newest = nodes * *graph + 1;
    *list = &newest;
    *count = 1;
    return 0;
}

KernelQuestions kernel_questions() {
    KernelQuestions questions;
    questions.parameter_info = parameter_info;
    questions.module_of_function = module_of;
    return questions;
}

GraphQuestions graph_questions() {
    GraphQuestions questions;
    questions.capture_info = capture_of;
    questions.nodes = nodes_of;
    questions.edges = edges_of;
    questions.node_type = type_of;
    questions.kernel_node = kernel_of;
    questions.memset_node = fill_of;
    return questions;
}

std::string name_of(std::size_t function) { return "kernel" + std::to_string(function); }

std::string entry_of(std::size_t function) { return ".entry " + name_of(function) + '('; }

// Every kernel of the PTX reads its first pointer, writes its second pointer, and has not the third one.
KernelUse use_of_kernel() {
    KernelUse use;
    use.pointers = {{0, Kind::read, false, -1, 0, "x"}, {8, Kind::write, false, -1, 0, "y"}};
    use.complete = true;
    return use;
}

KernelUses analyse(std::string_view text) {
    ++analyses;
    std::this_thread::yield();
    KernelUses uses;
    for (std::size_t function = 1; function <= functions; ++function)
        if (text.find(entry_of(function)) != std::string_view::npos)
            uses.emplace(name_of(function), use_of_kernel());
    return uses;
}

std::string ptx_of(std::size_t module) {
    std::string text;
    for (std::size_t function = 1; function <= functions; ++function)
        if (1 + function % modules == module)
            text += entry_of(function);
    return text;
}

class Work {
public:
    Work()
        : table_(analyse), kernels_(kernel_questions()), graph_questions_(graph_questions()), reader_(detector_, table_, kernels_),
          graphs_(detector_, reader_, graph_questions_) {
        for (std::size_t block = 0; block < blocks; ++block)
            detector_.memory_allocated(base + block * room, room, 0, 0, 0);
    }

    // Threads that need the uses of one module get them from one analysis.
    void begin_together() {
        reader_.module_loaded(1, nullptr);
        table_.add_ptx(1, ptx_of(1));
        analyses = 0;
        std::vector<std::thread> threads;
        for (int worker = 0; worker < workers; ++worker)
            threads.emplace_back([&] {
                const NamedOperation operation = launch(6, base, base + room, base + 2 * room);
                expect(operation.uses.count == 2, "a kernel with PTX has other uses");
                expect(operation.uses.first[0].label == "x", "a pointer has lost its label");
            });
        for (std::thread &thread : threads)
            thread.join();
        expect(analyses == 1, "a module is analysed several times");
    }

    void run(std::size_t operations, std::uint64_t seed) {
        std::mt19937_64 chance(seed);
        const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(chance() % bound); };
        for (std::size_t number = 0; number < operations; ++number) {
            const std::size_t function = 1 + below(functions), module = 1 + below(modules);
            const libcuda::GraphExec executable = 1 + below(executables);
            const libcuda::Graph graph = below(7);
            const WatchedStream stream{0, 16 * (1 + below(4)), 16 * (1 + below(4))};
            switch (below(22)) {
            case 0:
                table_.describe(module, name_of(function), use_of_kernel());
                break;
            case 1:
                table_.add_ptx(module, ptx_of(module));
                break;
            case 2:
                reader_.module_unloaded(module);
                break;
            case 3:
                detector_.memory_freed(base + below(blocks) * room, 0);
                break;
            case 4:
                detector_.memory_allocated(base + below(blocks) * room, room, 0, 0, 0);
                break;
            case 5:
                graphs_.instantiated(executable, graph);
                break;
            case 6:
                graphs_.updated(executable, graph);
                break;
            case 7:
                graphs_.executable_about_to_be_destroyed(executable);
                break;
            case 8:
                graphs_.captured(stream, launch(function, base, base + room, base), 0);
                break;
            case 9:
                graphs_.graph_about_to_be_destroyed(graph);
                break;
            case 10: {
                libcuda::KernelNode kernel{};
                kernel_of(below(4), &kernel);
                graphs_.kernel_node_set(executable, nodes * graph + 1 + below(3), kernel);
                break;
            }
            case 11:
                graphs_.enabled(executable, nodes * graph + below(nodes), below(2) == 0);
                break;
            case 12:
                graphs_.cloned(graph, below(7));
                break;
            case 13:
                graphs_.child_added(nodes * graph, graph, below(7));
                break;
            case 14:
                detector_.device_synchronized(0, 0);
                break;
            case 15:
            case 16:
                graphs_.launched(executable, stream, 0);
                break;
            default: {
                const NamedOperation operation =
                    launch(function, base + below(blocks * room), base + below(blocks * room), chance());
                for (const RaceDetector::NamedUse &named : operation.uses)
                    expect(named.use.region.begin() >= base && named.use.region.end() <= base + blocks * room,
                           "a use lies outside of all memory");
                detector_.work(0, stream.key, operation.name, operation.uses, 0);
            }
            }
        }
    }

    void expect_little() {
        expect(table_.sizes().modules <= modules + 1 && table_.sizes().functions <= functions, "modules are kept");
        expect(graphs_.sizes().executables <= executables, "executable graphs are kept");
        expect(graphs_.sizes().captured_nodes <= 7 * nodes, "nodes are kept");
    }

private:
    NamedOperation launch(std::size_t function, Address first, Address second, Address third) {
        const std::string name = name_of(function);
        Address values[3] = {first, second, third};
        void *parameters[3] = {&values[0], &values[1], &values[2]};
        return reader_.uses_of({function, name.c_str(), parameters, nullptr, {}});
    }

    RaceDetector detector_;
    KernelTable table_;
    const KernelQuestions kernels_;
    const GraphQuestions graph_questions_;
    LaunchReader reader_;
    GraphWatch graphs_;
};

} // namespace

int main(int count, char **arguments) {
    const std::size_t operations = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10000;
    const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    for (int turn = 0; turn < 20; ++turn)
        Work().begin_together();
    Work work;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < workers; ++worker)
        threads.emplace_back([&, worker] { work.run(operations, seed * workers + worker); });
    for (std::thread &thread : threads)
        thread.join();
    work.expect_little();
    std::printf("watch: %d threads, %zu operations each, seed %llu\n", workers, operations,
                static_cast<unsigned long long>(seed));
}
