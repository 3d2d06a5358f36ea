// The detector of races for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/python/containers.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"
#include "sanitizer/_cpp/bindings/host_reports.hpp"
#include "sanitizer/_cpp/bindings/pending_races.hpp"
#include "sanitizer/_cpp/bindings/python_race.hpp"
#include "sanitizer/_cpp/bindings/python_race_detector.hpp"
#include "sanitizer/_cpp/bindings/python_uses.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Self = PythonRaceDetector;
using races::RaceDetector;

void work(Self &self, int device, Stream stream, nb::handle name, nb::handle accesses) {
    Uses uses(accesses);
    self.tell(self.detector.work(device, key_of(stream), name_of(name), uses.get(), note_python_stack()));
}

void work_together(Self &self, std::vector<RaceDetector::DeviceStream> streams, nb::handle name, nb::handle accesses) {
    Uses uses(accesses);
    for (auto &[device, stream] : streams)
        stream = key_of(stream);
    self.tell(self.detector.work_together(streams, name_of(name), uses.get(), note_python_stack()));
}

PythonRaceGraph *graph(nb::handle_t<Self> self, nb::handle nodes) {
    std::vector<RaceDetector::NamedNode> named;
    std::vector<nb::object> kept; // the tuples own the names and the labels
    kept.push_back(tuple_of(nodes));
    for (const nb::handle node : kept.front()) {
        kept.push_back(tuple_of(node));
        const nb::handle parts = kept.back();
        RaceDetector::NamedNode made;
        if (nb::len(parts) != 4 || !nb::try_cast(parts[2], made.dependencies) || !nb::try_cast(parts[3], made.stack))
            throw nb::type_error("a node is (name, accesses, places of dependencies, number of the stack)");
        made.name = name_of(parts[0]);
        kept.push_back(tuple_of(parts[1]));
        if (!read_uses(kept.back().ptr(), &made.uses))
            nb::raise_python_error();
        named.push_back(std::move(made));
    }
    RaceDetector &detector = nb::cast<Self &>(self).detector;
    return new PythonRaceGraph(nb::borrow(self), detector, detector.add_graph(named));
}

void set_node(Self &self, PythonRaceGraph &graph, std::size_t place, nb::handle accesses) {
    if (&graph.detector != &self.detector)
        throw nb::value_error("the graph belongs to another detector");
    Uses uses(accesses);
    self.detector.set_node(*graph.plan, place, uses.get());
}

void follow(Self &self, PythonRaceGraph &graph, const PythonRaceGraph &before) {
    if (&graph.detector != &self.detector || &before.detector != &self.detector)
        throw nb::value_error("the graph belongs to another detector");
    self.detector.follow(*graph.plan, *before.plan);
}

void launch(Self &self, PythonRaceGraph &graph, int device, Stream stream) {
    if (&graph.detector != &self.detector)
        throw nb::value_error("the graph belongs to another detector");
    self.tell(self.detector.launch(*graph.plan, device, key_of(stream), note_python_stack()));
}

nb::list races_of(Self &self) {
    nb::list made = new_list();
    for (const auto &race : self.detector.races())
        made.append(PythonRace{race});
    return made;
}

// Python's garbage collector has to know which objects an instance refers to. A graph keeps its detector until the end,
// because the end of the graph needs the detector, so only the detector's reference is given up to break a circle.
template <typename Owner, nb::object Owner::*held> int traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    if (nb::inst_ready(object))
        Py_VISIT((nb::inst_ptr<Owner>(object)->*held).ptr());
    return 0;
}

int clear(PyObject *object) {
    nb::inst_ptr<Self>(object)->on_race.reset();
    return 0;
}

PyType_Slot detector_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse<Self, &Self::on_race>)},
                                {Py_tp_clear, reinterpret_cast<void *>(clear)},
                                {0, nullptr}};
PyType_Slot graph_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse<PythonRaceGraph, &PythonRaceGraph::owner>)}, {0, nullptr}};

} // namespace

void bind_races(nb::module_ &module) {
    bind_race(module);
    module.def("deliver_races", [] { pending_races().flush(); }, R"(
    Call the ``on_race`` of detectors now for the races that callbacks of the driver have found.

    Otherwise the main thread does that as soon as it runs Python code. Raises the exception of an ``on_race``; the
    other waiting races of that detector are then found only by :meth:`RaceDetector.races`.)");
    nb::class_<PythonRaceGraph>(module, "RaceGraph", "An executable graph that :meth:`RaceDetector.graph` has made.",
                                nb::type_slots(graph_slots));
    nb::class_<Self>(module, "RaceDetector", R"(
    Finds races between the accesses of operations, from what a program does.

    A handle of a default stream means the default stream of the calling thread, as in CUDA. A stream that was not
    announced counts as a blocking stream. Any thread may call any method.

    Args:
        on_race: A function that is called with each new race, after the event that has found the race. The exception
            of a call is raised to the caller of the event, and the other races of the event are then found only by
            :meth:`races`. Races with equal names, kinds and stacks are the same race, which is reported once.)",
                     nb::type_slots(detector_slots))
        .def(nb::init<nb::object>(), nb::arg("on_race"),
             nb::sig("def __init__(self, on_race: Callable[[Race], object]) -> None"))
        // Streams
        .def(
            "stream_created",
            [](Self &self, int device, Stream stream, bool blocking) {
                self.detector.stream_created(device, key_of(stream), blocking);
            },
            nb::arg("device"), nb::arg("stream"), nb::arg("blocking"))
        .def(
            "stream_destroyed",
            [](Self &self, int device, Stream stream) { self.detector.stream_destroyed(device, key_of(stream)); },
            nb::arg("device"), nb::arg("stream"))
        .def(
            "stream_synchronized",
            [](Self &self, int device, Stream stream) {
                self.detector.stream_synchronized(device, key_of(stream), note_python_stack());
            },
            nb::arg("device"), nb::arg("stream"),
            "Note that the host has waited for a stream, or that a query of the stream found it idle.")
        .def(
            "device_synchronized",
            [](Self &self, int device) { self.detector.device_synchronized(device, note_python_stack()); },
            nb::arg("device"))
        // Events
        .def(
            "event_recorded",
            [](Self &self, std::uintptr_t event, int device, Stream stream) {
                self.detector.event_recorded(event, device, key_of(stream), note_python_stack());
            },
            nb::arg("event"), nb::arg("device"), nb::arg("stream"))
        .def(
            "event_waited",
            [](Self &self, std::uintptr_t event, int device, Stream stream) {
                self.detector.event_waited(event, device, key_of(stream), note_python_stack());
            },
            nb::arg("event"), nb::arg("device"), nb::arg("stream"),
            "Note that a stream waits for the last record of an event.")
        .def(
            "event_synchronized",
            [](Self &self, std::uintptr_t event) { self.detector.event_synchronized(event, note_python_stack()); },
            nb::arg("event"),
            "Note that the host has waited for an event, or that a query of the event found it complete.")
        .def(
            "event_destroyed", [](Self &self, std::uintptr_t event) { self.detector.event_destroyed(event); },
            nb::arg("event"))
        // Work
        .def("work", work, nb::arg("device"), nb::arg("stream"), nb::arg("name"), nb::arg("accesses"),
             nb::sig("def work(self, device: int, stream: int, name: str, accesses: Sequence[RaceUse]) -> None"), R"(
        Note an operation, and compare its accesses with those before.

        Raises:
            TypeError: The name or a part of an access has another type.
            ValueError: An access has another form than :data:`RaceUse`.)")
        .def("work_together", work_together, nb::arg("streams"), nb::arg("name"), nb::arg("accesses"),
             nb::sig(
                 "def work_together(self, streams: Sequence[tuple[int, int]], name: str, accesses: Sequence[RaceUse]) "
                 "-> None"),
             "Note an operation on several streams, given as (device, stream), that wait for each other.")
        .def(
            "graph", graph, nb::arg("nodes"),
            nb::sig("def graph(self, nodes: Sequence[tuple[str, Sequence[RaceUse], Sequence[int], int]]) -> RaceGraph"),
            R"(
        Make an executable graph.

        Args:
            nodes: For each node the name, the accesses, the places of earlier nodes that the node depends on, and the
                number of the stack (:meth:`note_stack`).

        Raises:
            IndexError: A dependency is no earlier node.)")
        .def("set_node", set_node, nb::arg("graph"), nb::arg("place"), nb::arg("accesses"),
             nb::sig("def set_node(self, graph: RaceGraph, place: int, accesses: Sequence[RaceUse]) -> None"), R"(
        Replace the accesses of the node at ``place`` of ``graph`` for the next launches.

        Raises:
            IndexError: The graph has no such node.
            ValueError: The graph belongs to another detector.)")
        .def("follow", follow, nb::arg("graph"), nb::arg("before"), R"(
        Let the launches of ``graph`` come after those of ``before``: both stand for one executable graph.

        Raises:
            ValueError: A graph belongs to another detector.)")
        .def("launch", launch, nb::arg("graph"), nb::arg("device"), nb::arg("stream"), R"(
        Note a launch of a graph, and compare the accesses of its nodes with those before.

        Raises:
            ValueError: The graph belongs to another detector.)")
        // Memory
        .def(
            "memory_allocated",
            [](Self &self, Address address, std::size_t size, int device, Stream stream) {
                self.detector.memory_allocated(address, size, device, key_of(stream), note_python_stack());
            },
            nb::arg("address"), nb::arg("size"), nb::arg("device"), nb::arg("stream"))
        .def(
            "memory_freed",
            [](Self &self, Address address) { self.detector.memory_freed(address, note_python_stack()); },
            nb::arg("address"))
        .def(
            "memory_unmapped",
            [](Self &self, Address address, std::size_t size) {
                self.detector.memory_unmapped(address, size, 0, false);
            },
            nb::arg("address"), nb::arg("size"),
            "Forget the accesses of memory. A size of 0 stands for the allocation that begins at ``address``.")
        .def(
            "host_registered",
            [](Self &self, Address address, std::size_t size) { self.detector.host_registered(address, size); },
            nb::arg("address"), nb::arg("size"), "Take note of page-locked memory of the host.")
        .def(
            "host_unregistered", [](Self &self, Address address) { self.detector.host_unregistered(address); },
            nb::arg("address"), "Forget the page-locked memory that begins at ``address``.")
        .def(
            "watch_host", [](Self &self) { begin_host_reports(self, HostReports::at_once); }, R"(
        Let the detector hear of the accesses of the host to page-locked memory in use, in the thread of the access.

        Only the whole pages of the memory are watched. A process has one such detector, the last one. Nothing happens
        on a machine that does not tell reads from writes.)")
        .def(
            "end_watch_of_host", [](Self &self) { end_host_reports(self); },
            "End the watch of :meth:`watch_host`, and protect no memory any more.")
        .def("attach", &Self::attach, nb::lock_self(), nb::arg("ledger"),
             nb::sig("def attach(self, ledger: Ledger) -> None"), R"(
        Let ``ledger`` tell the detector of all its memory, also of the live allocations.

        Raises:
            RuntimeError: The detector is attached already, or the ledger has another detector.)")
        .def("detach", &Self::detach, nb::lock_self(),
             "End what :meth:`attach` has begun. Nothing happens if the detector is not attached.")
        // Reports
        .def(
            "note_stack", [](Self &) { return note_python_stack(); },
            "Return the number of the Python stack of the caller.")
        .def_prop_ro(
            "operations", [](Self &self) { return self.detector.operations(); }, "The number of operations until now.")
        .def("races", races_of, nb::sig("def races(self) -> list[Race]"),
             "Return the distinct races, in the order in which they were found.")
        .def(
            "forget_races", [](Self &self) { self.detector.forget_races(); },
            "Report races again that were reported before.");
}

} // namespace tcuda
