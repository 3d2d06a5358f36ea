#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "sanitizer/_cpp/library_calls/import_table.hpp"
#include "sanitizer/_cpp/library_calls/interception.hpp"
#include "sanitizer/_cpp/library_calls/signature.hpp"
#include "sanitizer/_cpp/library_calls/thunks.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using library_calls::Interception;

// The lock of Python is given back: the loader's lock, which the interception takes, is held by threads that load a
// module and wait for Python's lock.
void begin(const std::vector<std::string> &modules) {
    const nb::gil_scoped_release released;
    Interception::instance().begin(modules);
}
void end() {
    const nb::gil_scoped_release released;
    Interception::instance().end();
}
void look_again() {
    const nb::gil_scoped_release released;
    Interception::instance().look_again();
}

nb::dict counts() {
    nb::dict counts = new_dict();
    const auto &signatures = library_calls::signatures();
    for (std::size_t function = 0; function < signatures.size(); ++function)
        if (const std::uint64_t calls = library_calls::calls_of(function))
            counts[nb::str(signatures[function].name.c_str())] = calls;
    return counts;
}

std::vector<std::pair<std::string, std::vector<std::string>>> table() {
    std::vector<std::pair<std::string, std::vector<std::string>>> list;
    for (const auto &signature : library_calls::signatures()) {
        list.emplace_back(signature.name, std::vector<std::string>());
        const auto &row = library_calls::rows[library_calls::functions[list.size() - 1].row];
        std::string word;
        for (const char letter : std::string(row.arguments) + " ")
            if (letter != ' ')
                word += letter;
            else if (!word.empty())
                list.back().second.push_back(std::exchange(word, {}));
    }
    return list;
}

std::vector<std::string> imports_of(const std::string &path) {
    std::vector<std::string> names;
    const library_calls::LoadedModule module(path);
    if (module)
        for (const auto &entry : module.imports([](const char *) { return true; }))
            names.push_back(entry.name);
    return names;
}

const char *kind_name(kernel_uses::Kind kind) {
    constexpr const char *names[] = {"none", "read", "write", "both"};
    return names[std::size_t(kind)];
}

// The notes of the thread, the innermost ones first.
nb::list notes() {
    nb::list scopes = new_list();
    for (const watch::CallNotes *scope = watch::innermost_notes(); scope; scope = scope->outer) {
        nb::list all = new_list();
        for (const watch::NotedMemory &memory : scope->memory) {
            nb::object shape = nb::none();
            if (memory.extent_known) {
                nb::list dimensions = new_list();
                for (const races::Dimension &dimension : memory.region.shape())
                    dimensions.append(nb::make_tuple(dimension.count, dimension.stride));
                shape = nb::make_tuple(memory.region.itemsize(), dimensions);
            }
            all.append(nb::make_tuple(memory.label, memory.kind_known ? kind_name(memory.kind) : "unknown",
                                      memory.region.address(), shape));
        }
        scopes.append(nb::make_tuple(scope->name, all));
    }
    return scopes;
}

} // namespace

// Adds the interception of calls of NVIDIA's libraries to the module.
void bind_library_calls(nb::module_ &module) {
    module.def("begin_library_calls", begin, nb::arg("modules") = std::vector<std::string>());
    module.def("end_library_calls", end);
    module.def("look_for_library_calls", look_again);
    module.def("notes_library_calls", [] { return Interception::instance().is_on(); });
    module.def("noting_function", library_calls::noting_function, nb::arg("name"), nb::arg("address"));
    module.def("intercepted_library_calls", [] { return Interception::instance().intercepted(); });
    module.def("counted_library_calls", counts);
    module.def("library_call_table", table);
    module.def("imports_of_module", imports_of, nb::arg("path"));
    module.def("noted_memory", notes);
}

} // namespace tcuda
