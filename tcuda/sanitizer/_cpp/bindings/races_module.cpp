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
    module.def("deliver_races", [] { pending_races().flush(); });
    nb::class_<PythonRaceGraph>(module, "RaceGraph", nb::type_slots(graph_slots));
    nb::class_<Self>(module, "RaceDetector", nb::type_slots(detector_slots))
        .def(nb::init<nb::object>(), nb::arg("on_race"))
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
            nb::arg("device"), nb::arg("stream"))
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
            nb::arg("event"), nb::arg("device"), nb::arg("stream"))
        .def(
            "event_synchronized",
            [](Self &self, std::uintptr_t event) { self.detector.event_synchronized(event, note_python_stack()); },
            nb::arg("event"))
        .def(
            "event_destroyed", [](Self &self, std::uintptr_t event) { self.detector.event_destroyed(event); },
            nb::arg("event"))
        // Work
        .def("work", work, nb::arg("device"), nb::arg("stream"), nb::arg("name"), nb::arg("accesses"))
        .def("work_together", work_together, nb::arg("streams"), nb::arg("name"), nb::arg("accesses"))
        .def("graph", graph, nb::arg("nodes"))
        .def("set_node", set_node, nb::arg("graph"), nb::arg("place"), nb::arg("accesses"))
        .def("follow", follow, nb::arg("graph"), nb::arg("before"))
        .def("launch", launch, nb::arg("graph"), nb::arg("device"), nb::arg("stream"))
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
            nb::arg("address"), nb::arg("size"))
        .def(
            "host_registered",
            [](Self &self, Address address, std::size_t size) { self.detector.host_registered(address, size); },
            nb::arg("address"), nb::arg("size"))
        .def(
            "host_unregistered", [](Self &self, Address address) { self.detector.host_unregistered(address); },
            nb::arg("address"))
        .def("watch_host", [](Self &self) { begin_host_reports(self, HostReports::at_once); })
        .def("end_watch_of_host", [](Self &self) { end_host_reports(self); })
        .def("attach", &Self::attach, nb::lock_self(), nb::arg("ledger"))
        .def("detach", &Self::detach, nb::lock_self())
        // Reports
        .def("note_stack", [](Self &) { return note_python_stack(); })
        .def_prop_ro("operations", [](Self &self) { return self.detector.operations(); })
        .def("races", races_of)
        .def("forget_races", [](Self &self) { self.detector.forget_races(); });
}

} // namespace tcuda
