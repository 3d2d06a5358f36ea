// The functions of the search for races that only tests call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/bindings/python_kernel_use.hpp"
#include "sanitizer/_cpp/bindings/python_race.hpp"
#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/bindings/python_uses.hpp"
#include "sanitizer/_cpp/cupti/calls.hpp"
#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/kernel_uses/mangled_name.hpp"
#include "sanitizer/_cpp/library_calls/interception.hpp"
#include "sanitizer/_cpp/library_calls/signature.hpp"
#include "sanitizer/_cpp/library_calls/thunks.hpp"
#include "sanitizer/_cpp/watch/call_notes.hpp"

namespace nb = nanobind;

namespace tcuda {

void bind_launches_for_tests(nb::module_ &); // in launches_for_tests.cpp

namespace {

// The pages of the host

PyObject *seen_function = nullptr; // kept until another function takes its place

void call_seen(std::uintptr_t address, bool write) {
    // A thread of a library, such as one of BLAS, must not wait for Python's lock: the thread that holds the lock may
    // wait for the thread of the library.
    if (PyGILState_GetThisThreadState() == nullptr)
        return;
    const nb::gil_scoped_acquire lock;
    const nb::error_scope before; // the access may be part of code that handles an error
    const nb::object function = nb::borrow(seen_function);
    try {
        const Interruption outer;
        function(address, write);
    } catch (const nb::python_error &error) {
        Interruption::keep(error);
    }
    Interruption::deliver();
}

void watch_pages(const std::vector<std::tuple<std::uintptr_t, std::uintptr_t, bool>> &ranges, nb::object seen) {
    std::vector<WatchedRange> watched;
    for (const auto &[begin, end, reads] : ranges)
        watched.push_back({begin, end, reads});
    const nb::object before = nb::steal(std::exchange(seen_function, seen.release().ptr()));
    PageWatch::watch(std::move(watched), call_seen);
}

// The detector

// Work that a callback of the driver sees.
void work_in_callback(PythonRaceDetector &self, int device, Stream stream, nb::handle name, nb::handle accesses,
                      bool with_lock) {
    Uses uses(accesses);
    const std::string_view text = name_of(name);
    std::optional<nb::gil_scoped_release> released;
    if (!with_lock)
        released.emplace();
    pending_races().add(self, self.detector.work(device, key_of(stream), text, uses.get(), note_any_stack()));
}

void host_access(PythonRaceDetector &self, nb::handle name, nb::handle accesses) {
    Uses uses(accesses);
    self.tell(self.detector.host_access(name_of(name), uses.get(), note_python_stack()));
}

nb::object ranges_in_use(PythonRaceDetector &self) {
    nb::list made = new_list();
    for (const WatchedRange &range : self.detector.ranges_in_use())
        made.append(nb::make_tuple(range.begin, range.end, range.reads));
    return made;
}

nb::dict sizes_of_detector(PythonRaceDetector &self) {
    const races::RaceDetector::Sizes sizes = self.detector.sizes();
    nb::dict made = new_dict();
    made["operations"] = sizes.operations;
    made["intervals"] = sizes.intervals;
    made["accesses"] = sizes.accesses;
    made["slots"] = sizes.slots;
    made["events"] = sizes.events;
    made["races"] = sizes.races;
    made["allocations"] = sizes.allocations;
    return made;
}

// The notes of calls, and the calls of libraries

nb::tuple described(const watch::NotedMemory &memory) {
    nb::list counts = new_list(), strides = new_list();
    for (const races::Dimension &dimension : memory.region.shape()) {
        counts.append(dimension.count);
        strides.append(dimension.stride);
    }
    return nb::make_tuple(memory.region.address(), memory.region.itemsize(), nb::tuple(counts), nb::tuple(strides),
                          memory.kind_known ? nb::int_(static_cast<int>(memory.kind)) : nb::object(nb::none()),
                          nb::str(memory.label.c_str(), memory.label.size()));
}

// The notes of this thread, the innermost first.
nb::list current_notes() {
    nb::list made = new_list();
    for (const watch::CallNotes *notes = watch::innermost_notes(); notes != nullptr; notes = notes->outer) {
        nb::list memory = new_list();
        for (const watch::NotedMemory &noted : notes->memory)
            memory.append(described(noted));
        made.append(nb::make_tuple(nb::str(notes->name.c_str(), notes->name.size()), memory, notes->exclusive));
    }
    return made;
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

// The driver's calls, and the names of kernels

nb::dict watched_calls() {
    nb::dict made = new_dict();
    for (const cupti::WatchedCall &call : cupti::watched_calls())
        made[call.name] = call.id;
    return made;
}

nb::tuple uses_of_mangled_name(const std::string &name, const std::vector<std::pair<std::size_t, std::size_t>> &given) {
    std::vector<kernel_uses::Parameter> parameters;
    for (const auto &[offset, size] : given)
        parameters.push_back({offset, size});
    return tuple_of(kernel_uses::uses_of_mangled_name(name, parameters));
}

} // namespace

void bind_sanitizer_for_tests(nb::module_ &module) {
    module.def("watch_pages", watch_pages, nb::arg("ranges"), nb::arg("seen"),
               R"(
    Watch ranges of the host's memory in place of the ranges that were watched before.

    Only the whole pages of a range are watched. The first access to a range ends the watch of that range.

    Args:
        ranges: The begin, the end, and whether reads are noticed too, and not only writes.
        seen: Called before an access with its address, and whether the access is a write. The call is in the thread
            that makes the access. The exception of a call reaches the program as that of a signal handler does.)");
    module.def("end_watch_of_pages", PageWatch::end,
               "Watch no memory of the host, and give the signal ``SIGSEGV`` back.");
    module.def("watches_pages", PageWatch::supported,
               "Return whether this machine tells the reads of watched memory from the writes.");
    module.def("work_in_callback", work_in_callback, nb::arg("detector"), nb::arg("device"), nb::arg("stream"),
               nb::arg("name"), nb::arg("accesses"), nb::arg("with_lock"),
               R"(
    Note work as a callback of the driver does: the races wait for the main thread.

    Args:
        detector: The detector.
        device: The device.
        stream: The stream.
        name: The name of the operation.
        accesses: The accesses of the operation.
        with_lock: Whether the thread keeps Python's lock in the callback.)");
    module.def("host_access", host_access, nb::arg("detector"), nb::arg("name"), nb::arg("accesses"),
               "Compare accesses of the host with the work that the host does not know to be complete.");
    module.def("ranges_in_use", ranges_in_use, nb::arg("detector"),
               R"(
    Return the ranges of page-locked memory that operations may still use, as the host knows.

    Returns:
        The begin and the end of each range, and whether an operation writes to the range.)");
    module.def("sizes_of_detector", sizes_of_detector, nb::arg("detector"), R"(
    Return how much the detector keeps.

    Returns:
        The numbers of recent operations, intervals of addresses, accesses, slots of clocks, recorded events, distinct
        races and allocations.)");
    module.def(
        "recent_steps", [](PythonRaceDetector &detector) { return list_of(detector.detector.recent()); },
        nb::arg("detector"), R"(
    Return the last operations, records, waits and synchronisations, oldest first.

    Returns:
        For each the "kind" ("work", "record", "wait" or "sync"), the "number" of the last operation so far, the
        "device" (-1 if the event alone is known), the "stream" (None for a wait for the whole device), the "name",
        the "event" or None, and the "stack".)");
    module.def(
        "take_dropped_races", [] { return pending_races().take_dropped(); },
        "Return for how many races there was no room to wait, since the last call.");
    module.def("current_notes", current_notes, R"(
    Return the notes of this thread, the innermost first.

    Returns:
        For each the name of the library function, the memory, and whether no other memory is used. The memory is the
        address, the itemsize, the shape, the strides, the kind of the use (None if unknown), and the label.)");
    module.def(
        "intercepted_library_calls", [] { return library_calls::Interception::instance().intercepted(); },
        R"(Return the path of each module whose calls are noted, and the names of the functions in its import table.)");
    module.def("counted_library_calls", counts,
               R"(Return how many calls of each function of NVIDIA's libraries were noted since the process began.)");
    module.def("library_call_table", table,
               R"(Return the functions that are known, and of each its arguments in the words of the core's table.)");
    module.def("noted_memory", notes, R"(
    Return the notes of this thread, the innermost ones first.

    Each of them has the name of the library's function, which is empty outside of such a call, and the memory: a label,
    ``"read"``, ``"write"``, ``"both"`` or ``"unknown"``, the address, and the bytes of an item with the counts and
    strides of an array, or None if the extent is unknown.)");
    module.def("watched_calls", watched_calls,
               "Return the calls of the driver that a :class:`DriverWatch` knows, with CUPTI's numbers.");
    module.def("uses_of_mangled_name", uses_of_mangled_name, nb::arg("name"), nb::arg("parameters"),
               R"(
    Return what the mangled name of a kernel says of its memory.

    Args:
        name: The name.
        parameters: The offset and the size of each parameter.

    Returns:
        A tuple as in the dictionary of ``uses_of_ptx``.)");
    bind_launches_for_tests(module);
}

} // namespace tcuda
