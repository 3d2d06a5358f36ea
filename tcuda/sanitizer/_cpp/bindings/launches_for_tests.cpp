// The classes of launches and of graphs for tests, with functions of a test in place of libcuda's functions. A program
// uses the readers only through a DriverWatch.

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"
#include "sanitizer/_cpp/bindings/python_kernel_use.hpp"
#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/bindings/use_reader.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"
#include "sanitizer/_cpp/watch/graph_watch.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"
#include "sanitizer/_cpp/watch/launch_reader.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using races::RaceDetector;
using watch::CallNotes;
using watch::GraphQuestions;
using watch::GraphWatch;
using watch::KernelQuestions;
using watch::KernelTable;
using watch::Launch;
using watch::LaunchReader;

using Functions = std::map<std::string, std::uintptr_t>; // the addresses of functions, by the names in libcuda

watch::FindFunction find_in(const Functions &functions) {
    return [&functions](const char *name) -> void * {
        const auto known = functions.find(name);
        return known == functions.end() ? nullptr : reinterpret_cast<void *>(known->second);
    };
}

struct PythonLaunchReader {
    PythonLaunchReader(PythonRaceDetector &detector, KernelTable &table, const Functions &functions)
        : detector(detector), questions(KernelQuestions::from(find_in(functions))),
          reader(detector.detector, table, questions) {}

    PythonRaceDetector &detector;
    const KernelQuestions questions;
    LaunchReader reader;
};

struct PythonGraphWatch {
    PythonGraphWatch(PythonLaunchReader &reader, const Functions &functions)
        : detector(reader.detector), questions(GraphQuestions::from(find_in(functions))),
          graphs(detector.detector, reader.reader, questions) {}

    PythonRaceDetector &detector;
    const GraphQuestions questions;
    GraphWatch graphs;
};

// Notes of scopes, outermost first: (name, exclusive, ((access, extent_known, kind_known), ...)).
using Scopes = std::vector<std::tuple<std::string, bool, std::vector<std::tuple<nb::object, bool, bool>>>>;

class NotedScopes {
public:
    explicit NotedScopes(const Scopes &scopes) : before_(watch::innermost_notes()) {
        for (const auto &[name, exclusive, memory] : scopes) {
            CallNotes &notes = notes_.emplace_back();
            notes.name = name;
            notes.exclusive = exclusive;
            for (const auto &[access, extent_known, kind_known] : memory) {
                std::vector<RaceDetector::NamedUse> uses;
                if (!read_uses(nb::make_tuple(access).ptr(), &uses))
                    nb::raise_python_error();
                notes.memory.push_back({uses[0].use.region, extent_known, kind_known,
                                        static_cast<kernel_uses::Kind>(uses[0].use.kind), std::string(uses[0].label)});
            }
        }
        for (CallNotes &notes : notes_) {
            notes.outer = watch::innermost_notes();
            watch::innermost_notes() = &notes;
        }
    }
    ~NotedScopes() { watch::innermost_notes() = before_; }
    NotedScopes(const NotedScopes &) = delete;
    NotedScopes &operator=(const NotedScopes &) = delete;

private:
    CallNotes *const before_;
    std::deque<CallNotes> notes_;
};

Launch launch_of(libcuda::Function function, const std::optional<std::string> &name, std::uintptr_t parameters,
                 std::uintptr_t extra) {
    return {function,
            name ? name->c_str() : nullptr,
            reinterpret_cast<void **>(parameters),
            reinterpret_cast<void **>(extra),
            {}};
}

nb::list tuples_of(const RaceDetector::NamedUses &uses) {
    nb::list made = new_list();
    for (const RaceDetector::NamedUse &named : uses) {
        const races::Region &region = named.use.region;
        nb::list counts = new_list(), strides = new_list();
        for (const races::Dimension &dimension : region.shape()) {
            counts.append(dimension.count);
            strides.append(dimension.stride);
        }
        made.append(nb::make_tuple(region.address(), region.itemsize(), nb::tuple(counts), nb::tuple(strides),
                                   static_cast<int>(named.use.kind), std::string(named.label),
                                   named.use.possible ? "possible" : "exact"));
    }
    return made;
}

std::pair<std::string, nb::list> uses(PythonLaunchReader &self, libcuda::Function function,
                                      std::optional<std::string> name, std::uintptr_t parameters, std::uintptr_t extra,
                                      const Scopes &scopes) {
    const NotedScopes noted(scopes);
    const watch::NamedOperation operation = self.reader.uses_of(launch_of(function, name, parameters, extra));
    return {std::string(operation.name), tuples_of(operation.uses)};
}

void launch(PythonLaunchReader &self, int device, Stream stream, libcuda::Function function,
            std::optional<std::string> name, std::uintptr_t parameters, std::uintptr_t extra, std::size_t count,
            const std::array<unsigned, 3> &grid, const std::array<unsigned, 3> &block) {
    Launch launch = launch_of(function, name, parameters, extra);
    launch.set_sizes(grid.data(), block.data());
    for (; count != 0; --count) {
        const watch::NamedOperation operation = self.reader.uses_of(launch);
        self.detector.tell(
            self.detector.detector.work(device, key_of(stream), operation.name, operation.uses, note_python_stack()));
    }
}

double seconds(PythonLaunchReader &self, libcuda::Function function, std::optional<std::string> name,
               std::uintptr_t parameters, std::size_t count) {
    const Launch launch = launch_of(function, name, parameters, 0);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t number = 0; number < count; ++number)
        self.reader.uses_of(launch);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

watch::WatchedStream watched(int device, Stream stream) { return {device, key_of(stream), stream}; }

nb::dict sizes(PythonGraphWatch &self) {
    const GraphWatch::Sizes sizes = self.graphs.sizes();
    nb::dict made = new_dict();
    made["executables"] = sizes.executables;
    made["captured_nodes"] = sizes.captured_nodes;
    return made;
}

// An analysis that is a function of Python: {kernel: (parameters, pointers, complete)} of the text.
KernelTable::Analysis analysis_of(nb::object function) {
    if (function.is_none())
        return {};
    return [function](std::string_view text) {
        const nb::gil_scoped_acquire lock;
        kernel_uses::KernelUses uses;
        const auto told = nb::cast<std::map<std::string, std::tuple<KernelParameterTuples, KernelPointerTuples, bool>>>(
            function(nb::bytes(text.data(), text.size())));
        for (const auto &[kernel, use] : told)
            uses.emplace(kernel, use_of(std::get<0>(use), std::get<1>(use), std::get<2>(use)));
        return uses;
    };
}

void make_table(KernelTable *place, nb::object of_ptx) { new (place) KernelTable(analysis_of(std::move(of_ptx))); }

nb::dict sizes_of_table(KernelTable &table) {
    const KernelTable::Sizes sizes = table.sizes();
    nb::dict made = new_dict();
    made["modules"] = sizes.modules;
    made["functions"] = sizes.functions;
    return made;
}

void bind_table(nb::module_ &module) {
    nb::class_<KernelTable>(module, "KernelTable", R"(
    What is known of kernels.

    Args:
        of_ptx: A function that returns the parameters, the pointers and the completeness of each kernel in a PTX text;
            None if the table knows nothing of PTX.)")
        .def("__init__", make_table, nb::arg("of_ptx") = nb::none())
        .def(
            "describe_kernel",
            [](KernelTable &table, watch::Module of, std::string kernel, const KernelParameterTuples &parameters,
               const KernelPointerTuples &pointers,
               bool complete) { table.describe(of, std::move(kernel), use_of(parameters, pointers, complete)); },
            nb::arg("module"), nb::arg("name"), nb::arg("parameters"), nb::arg("pointers"), nb::arg("complete"))
        .def(
            "add_ptx",
            [](KernelTable &table, watch::Module of, nb::bytes text) {
                table.add_ptx(of, std::string(text.c_str(), text.size()));
            },
            nb::arg("module"), nb::arg("text"))
        .def("forget_module", &KernelTable::forget, nb::arg("module"))
        .def("sizes", sizes_of_table, "Return how many modules and functions are known.");
    module.def("kernel_table", &watch::kernel_table, nb::rv_policy::reference,
               "Return the table that :func:`describe_kernel` fills.");
}

void bind_reader(nb::module_ &module) {
    using Self = PythonLaunchReader;
    nb::class_<Self>(module, "LaunchReader", R"(
    Reads what launches of kernels do with memory.

    Args:
        detector: The detector, which knows the live allocations.
        table: What is known of kernels.
        functions: The addresses of functions that stand for those of libcuda, by name.)")
        .def(nb::init<PythonRaceDetector &, KernelTable &, const Functions &>(), nb::arg("detector"), nb::arg("table"),
             nb::arg("functions"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("uses", uses, nb::arg("function"), nb::arg("name").none(), nb::arg("parameters"), nb::arg("extra") = 0,
             nb::arg("notes") = Scopes(), R"(
        Return the name of the operation and its uses.

        Args:
            function: The handle of the function.
            name: The name of the kernel, None if it is not told.
            parameters: The address of the list of the parameters' addresses, or 0.
            extra: The address of the list that has the parameter block, or 0.
            notes: The notes of scopes, the outermost first: the name, whether the notes are exclusive, and for each
                memory the region, the kind and the label, whether the extent is known, and whether the kind is
                known.)")
        .def("launch", launch, nb::arg("device"), nb::arg("stream"), nb::arg("function"), nb::arg("name").none(),
             nb::arg("parameters"), nb::arg("extra") = 0, nb::arg("count") = 1,
             nb::arg("grid") = std::array<unsigned, 3>{1, 1, 1}, nb::arg("block") = std::array<unsigned, 3>{1, 1, 1},
             "Tell the detector of ``count`` launches with these numbers of blocks and of threads of a block.")
        .def("seconds", seconds, nb::arg("function"), nb::arg("name").none(), nb::arg("parameters"), nb::arg("count"),
             "Return how long ``count`` readings of a launch take.")
        .def(
            "module_loaded",
            [](Self &self, watch::Module loaded, std::uintptr_t image) {
                self.reader.module_loaded(loaded, reinterpret_cast<const void *>(image));
            },
            nb::arg("module"), nb::arg("image"))
        .def(
            "module_unloaded", [](Self &self, watch::Module loaded) { self.reader.module_unloaded(loaded); },
            nb::arg("module"));
}

void bind_graphs(nb::module_ &module) {
    using Self = PythonGraphWatch;
    using Handle = std::uintptr_t;
    nb::class_<Self>(module, "GraphWatch", R"(
    Tells a detector of CUDA graphs.

    Args:
        reader: Reads the nodes that are kernels.
        functions: The addresses of functions that stand for those of libcuda, by name.)")
        .def(nb::init<PythonLaunchReader &, const Functions &>(), nb::arg("reader"), nb::arg("functions"),
             nb::keep_alive<1, 2>())
        .def(
            "captured",
            [](Self &self, int device, Stream stream, std::string name, nb::tuple accesses) {
                std::vector<RaceDetector::NamedUse> uses;
                if (!read_uses(accesses.ptr(), &uses))
                    nb::raise_python_error();
                self.graphs.captured(watched(device, stream), {name, {uses.data(), uses.size()}}, note_python_stack());
            },
            nb::arg("device"), nb::arg("stream"), nb::arg("name"), nb::arg("accesses"))
        .def(
            "launch_captured",
            [](Self &self, Handle executable, int device, Stream stream) {
                self.graphs.launch_captured(executable, watched(device, stream), note_python_stack());
            },
            nb::arg("executable"), nb::arg("device"), nb::arg("stream"))
        .def(
            "cloned", [](Self &self, Handle clone, Handle original) { self.graphs.cloned(clone, original); },
            nb::arg("clone"), nb::arg("original"))
        .def(
            "child_added",
            [](Self &self, Handle node, Handle graph, Handle child) { self.graphs.child_added(node, graph, child); },
            nb::arg("node"), nb::arg("graph"), nb::arg("child"))
        .def(
            "conditional_added",
            [](Self &self, Handle node, Handle graph, std::vector<Handle> bodies) {
                self.graphs.conditional_added(node, graph, std::move(bodies));
            },
            nb::arg("node"), nb::arg("graph"), nb::arg("bodies"))
        .def(
            "node_changed", [](Self &self, Handle node) { self.graphs.node_changed(node); }, nb::arg("node"))
        .def(
            "graph_destroyed", [](Self &self, Handle graph) { self.graphs.graph_about_to_be_destroyed(graph); },
            nb::arg("graph"))
        .def(
            "instantiated",
            [](Self &self, Handle executable, Handle graph, const Scopes &scopes) {
                const NotedScopes noted(scopes);
                self.graphs.instantiated(executable, graph);
            },
            nb::arg("executable"), nb::arg("graph"), nb::arg("notes") = Scopes())
        .def(
            "updated", [](Self &self, Handle executable, Handle graph) { self.graphs.updated(executable, graph); },
            nb::arg("executable"), nb::arg("graph"))
        .def(
            "node_set", [](Self &self, Handle executable, Handle node) { self.graphs.node_set(executable, node); },
            nb::arg("executable"), nb::arg("node"), "Note that a node has parameters that are not known.")
        .def(
            "kernel_node_set",
            [](Self &self, Handle executable, Handle node, Handle kernel) {
                self.graphs.kernel_node_set(executable, node, *reinterpret_cast<const libcuda::KernelNode *>(kernel));
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("parameters"))
        .def(
            "memcpy_node_set",
            [](Self &self, Handle executable, Handle node, Handle copy) {
                self.graphs.memcpy_node_set(executable, node, *reinterpret_cast<const libcuda::MemcpyNode *>(copy));
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("parameters"))
        .def(
            "memset_node_set",
            [](Self &self, Handle executable, Handle node, Handle fill) {
                self.graphs.memset_node_set(executable, node, *reinterpret_cast<const libcuda::MemsetNode *>(fill));
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("parameters"))
        .def(
            "child_node_set",
            [](Self &self, Handle executable, Handle node, Handle child) {
                self.graphs.child_node_set(executable, node, child);
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("child"))
        .def(
            "event_node_set",
            [](Self &self, Handle executable, Handle node, Handle event) {
                self.graphs.event_node_set(executable, node, event);
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("event"))
        .def(
            "enabled",
            [](Self &self, Handle executable, Handle node, bool enabled) {
                self.graphs.enabled(executable, node, enabled);
            },
            nb::arg("executable"), nb::arg("node"), nb::arg("enabled"))
        .def(
            "launched",
            [](Self &self, Handle executable, int device, Stream stream) {
                self.detector.tell(self.graphs.launched(executable, watched(device, stream), note_python_stack()));
            },
            nb::arg("executable"), nb::arg("device"), nb::arg("stream"))
        .def(
            "executable_destroyed",
            [](Self &self, Handle executable) { self.graphs.executable_about_to_be_destroyed(executable); },
            nb::arg("executable"))
        .def("sizes", sizes, "Return how many executable graphs and captured nodes are known.");
}

} // namespace

void bind_launches_for_tests(nb::module_ &module) {
    bind_table(module);
    bind_reader(module);
    bind_graphs(module);
}

} // namespace tcuda
