#include "sanitizer/_cpp/bindings/python_race.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/python/checked.hpp"
#include "bindings/python/containers.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using races::RaceAccess;
using races::RaceAllocation;
using races::RecentStep;

nb::object frames(StackId stack) { return checked(frames_of(stack)); }

// The handle of a stream. The per-thread default streams of all threads have the same.
Stream shown(Stream key) { return (key & 1) == 0 ? key : per_thread_stream; }

nb::tuple region_of(const PythonRaceAccess &self) {
    nb::list counts = new_list(), strides = new_list();
    for (const races::Dimension &dimension : self.access.shape) {
        counts.append(dimension.count);
        strides.append(dimension.stride);
    }
    return nb::make_tuple(self.access.address, self.access.itemsize, nb::tuple(counts), nb::tuple(strides));
}

const char *kind_of(const RaceAccess &access) {
    switch (access.kind) {
    case races::AccessKind::read:
        return "read";
    case races::AccessKind::write:
        return "write";
    default:
        return "read and write";
    }
}

const char *kind_of(const RecentStep &step) {
    switch (step.kind) {
    case RecentStep::Kind::work:
        return "work";
    case RecentStep::Kind::record:
        return "record";
    case RecentStep::Kind::wait:
        return "wait";
    default:
        return "sync";
    }
}

nb::object allocation_of(const PythonRace &self, const std::optional<RaceAllocation> &allocation) {
    return allocation ? nb::cast(PythonRaceAllocation{self.race, *allocation}) : nb::none();
}

} // namespace

nb::list list_of(const std::vector<RecentStep> &steps) {
    nb::list list = new_list();
    for (const RecentStep &step : steps) {
        nb::dict made = new_dict();
        made["number"] = step.number;
        made["kind"] = kind_of(step);
        made["device"] = step.device;
        made["stream"] = step.whole_device ? nb::none() : nb::cast(shown(step.stream));
        made["name"] = step.name;
        made["event"] = step.event;
        made["stack"] = frames(step.stack);
        list.append(made);
    }
    return list;
}

void bind_race(nb::module_ &module) {
    nb::class_<PythonRaceAccess>(module, "RaceAccess", "One of the two accesses of a race.")
        .def_prop_ro(
            "operation", [](const PythonRaceAccess &self) { return self.access.operation; },
            "The name of the operation.")
        .def_prop_ro(
            "label", [](const PythonRaceAccess &self) { return self.access.label; }, R"(
        The name of the argument of the operation, "" if none is known.)")
        .def_prop_ro(
            "kind", [](const PythonRaceAccess &self) { return kind_of(self.access); },
            nb::sig("def kind(self) -> Literal['read', 'write', 'read and write']"))
        .def_prop_ro(
            "device", [](const PythonRaceAccess &self) { return self.access.device; },
            "The device of the operation, -1 for the host.")
        .def_prop_ro(
            "stream", [](const PythonRaceAccess &self) { return shown(self.access.stream); },
            "The handle of the stream.")
        .def_prop_ro("region", region_of,
                     nb::sig("def region(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]"),
                     "The address, the itemsize, the shape and the strides of the memory.")
        .def_prop_ro(
            "stack", [](const PythonRaceAccess &self) { return frames(self.access.stack); },
            nb::sig("def stack(self) -> list[dict[str, Any]]"),
            "The Python stack of the operation, innermost first. A node of a graph has the stack of its capture.")
        .def_prop_ro(
            "launch_stack",
            [](const PythonRaceAccess &self) {
                return self.access.launch_stack == 0 ? nb::none() : frames(self.access.launch_stack);
            },
            nb::sig("def launch_stack(self) -> list[dict[str, Any]] | None"),
            "The Python stack of the launch of the graph, None outside of graphs.")
        .def_prop_ro(
            "confidence", [](const PythonRaceAccess &self) { return self.access.possible ? "possible" : "exact"; },
            nb::sig("def confidence(self) -> Literal['exact', 'possible']"),
            "Whether the operation has surely accessed common bytes.")
        .def_prop_ro(
            "number", [](const PythonRaceAccess &self) { return self.access.number; },
            "The number of the operation, in the order of the calls.")
        .def_prop_ro(
            "host", [](const PythonRaceAccess &self) { return self.access.device < 0; },
            "Whether the access was one of the host.");

    nb::class_<PythonRaceAllocation>(module, "RaceAllocation", "The memory that a race is in.")
        .def_prop_ro("address", [](const PythonRaceAllocation &self) { return self.allocation.address; })
        .def_prop_ro("size", [](const PythonRaceAllocation &self) { return self.allocation.size; })
        .def_prop_ro("device", [](const PythonRaceAllocation &self) { return self.allocation.device; })
        .def_prop_ro(
            "stream", [](const PythonRaceAllocation &self) { return shown(self.allocation.stream); },
            "The handle of the stream for which the memory was allocated.")
        .def_prop_ro(
            "stack", [](const PythonRaceAllocation &self) { return frames(self.allocation.stack); },
            nb::sig("def stack(self) -> list[dict[str, Any]]"))
        .def_prop_ro(
            "freed_stack",
            [](const PythonRaceAllocation &self) {
                return self.allocation.freed_stack ? frames(*self.allocation.freed_stack) : nb::none();
            },
            nb::sig("def freed_stack(self) -> list[dict[str, Any]] | None"),
            "The Python stack of the free, None if the memory was not freed when the race was found.");

    nb::class_<PythonRace>(module, "Race",
                           "Two accesses of the same bytes, at least one of them a write, that no order relates.")
        .def_prop_ro(
            "kind", [](const PythonRace &self) { return self.race->kind(); },
            nb::sig("def kind(self) -> Literal['read after write', 'write after read', 'write after write']"))
        .def_prop_ro(
            "use_after_free", [](const PythonRace &self) { return self.race->use_after_free; },
            "Whether the memory was handed out again between the accesses.")
        .def_prop_ro(
            "current", [](const PythonRace &self) { return PythonRaceAccess{self.race, self.race->current}; },
            "The later access, whose operation found the race.")
        .def_prop_ro("previous",
                     [](const PythonRace &self) { return PythonRaceAccess{self.race, self.race->previous}; })
        .def_prop_ro(
            "overlap",
            [](const PythonRace &self) {
                const races::Race &race = *self.race;
                return nb::make_tuple(race.overlap_begin, race.overlap_end - race.overlap_begin);
            },
            nb::sig("def overlap(self) -> tuple[int, int]"),
            "The address of the first common byte, and the number of bytes up to the last one.")
        .def_prop_ro(
            "is_overlap_exact", [](const PythonRace &self) { return self.race->is_overlap_exact; },
            "False if the regions may have no byte in common; both accesses are possible then.")
        .def_prop_ro(
            "allocation", [](const PythonRace &self) { return allocation_of(self, self.race->allocation); },
            nb::sig("def allocation(self) -> RaceAllocation | None"),
            "The memory of the current access, None if it is not known.")
        .def_prop_ro(
            "previous_allocation",
            [](const PythonRace &self) { return allocation_of(self, self.race->previous_allocation); },
            nb::sig("def previous_allocation(self) -> RaceAllocation | None"),
            "The memory of the previous access, if the memory was handed out again since.")
        .def_prop_ro(
            "count", [](const PythonRace &self) { return self.race->count.load(std::memory_order_relaxed); },
            "How often the race was found until now.")
        .def_prop_ro(
            "recent", [](const PythonRace &self) { return list_of(self.race->recent); },
            nb::sig("def recent(self) -> list[dict[str, Any]]"), R"(
        The last operations, records, waits and synchronisations before the race was found, oldest first.

        Each has the "kind" ("work", "record", "wait" or "sync"), the "number" of the last operation so far, the
        "device" (-1 if the event alone is known), the "stream" (None for a wait for the whole device), the "name", the
        "event" or None, and the "stack".)");
}

} // namespace tcuda
