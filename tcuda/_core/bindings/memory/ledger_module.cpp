#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/memory/cupy_face.hpp"
#include "bindings/memory/ledger_errors.hpp"
#include "bindings/memory/python_ledger.hpp"
#include "bindings/memory/python_relief.hpp"
#include "bindings/memory/segment_listener.hpp"
#include "bindings/memory/snapshot_dicts.hpp"
#include "bindings/memory/statistics_dict.hpp"
#include "bindings/memory/torch_memory.hpp"
#include "bindings/python/containers.hpp"
#include "bindings/python/interruption.hpp"
#include "bindings/threads/python_lock.hpp"
#include "bindings/threads/python_stacks.hpp"
#include "driver/stream_key.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

using Self = PythonLedger;

// A time in which the ledger records no event behind all work of a device, because a stream is about to capture.
class ExpectedCapture {
public:
    explicit ExpectedCapture(PythonLedger &ledger) : owner_(nb::find(ledger)), gate_(ledger.ledger.gate()) {
        gate_.begin_capture();
    }
    ~ExpectedCapture() { end(); }
    ExpectedCapture(const ExpectedCapture &) = delete;
    ExpectedCapture &operator=(const ExpectedCapture &) = delete;

    // A second call does nothing.
    void end() noexcept {
        if (!std::exchange(ended_, true))
            gate_.end_capture();
    }

private:
    const nb::object owner_; // nb::keep_alive ends the process where there is no memory
    CaptureGate &gate_;
    bool ended_ = false;
};

DeviceLedger &of(Self &self, int device) { return self.ledger.of(device); }

// An interruption during an allocation undoes the allocation.
Address allocate(Self &self, int device, std::size_t size, Stream stream) {
    PythonRelief relief(self);
    const Address address =
        guarded(self, [&] { return self.ledger.allocate(device, size, key_of(stream), nullptr, &relief); });
    if (Interruption::pending())
        of(self, device).free(address);
    Interruption::raise_if_any();
    return address;
}

// An interruption during the beginning of a capture undoes the beginning.
CaptureId begin_capture(Self &self, PoolId id, int device, Stream stream) {
    const CaptureId capture = guarded(self, [&] { return self.ledger.begin_capture(id, device, key_of(stream)); });
    if (Interruption::pending()) {
        self.ledger.end_capture(capture);
        self.ledger.release_graph(id, {}, false);
    }
    Interruption::raise_if_any();
    return capture;
}

// The streams that this thread can name, each once.
nb::list streams_of(const Sharing &sharing) {
    nb::list handles = new_list();
    std::vector<Stream> seen;
    for (const Stream key : sharing.streams) {
        Stream handle;
        if (handle_of(key, &handle) != success || std::find(seen.begin(), seen.end(), key) != seen.end())
            continue;
        seen.push_back(key);
        handles.append(handle);
    }
    return handles;
}

nb::object sharing_of(Self &self, int device, Address address) {
    const auto found = guarded(self, [&] { return of(self, device).sharing_of(address); });
    if (!found)
        return nb::none();
    const nb::object segment = found->segment.second == 0 ? nb::none() : nb::cast(found->segment);
    return nb::make_tuple(found->block.first, found->block.second, streams_of(*found), found->pieces, segment,
                          found->youngest);
}

// The ledger has a reference to every attached tracker: Python may drop its own reference before the tracker is
// detached.
void attach(Self &self, int device, nb::object tracker) {
    of(self, device).attach(nb::cast<Tracker *>(tracker));
    tracker.release();
}

void detach(Self &self, int device, nb::object tracker) {
    if (of(self, device).detach(nb::cast<Tracker *>(tracker)))
        tracker.dec_ref();
}

void attach_to_host(Self &self, nb::object tracker) {
    self.ledger.host().attach(nb::cast<Tracker *>(tracker));
    tracker.release();
}

void detach_from_host(Self &self, nb::object tracker) {
    if (self.ledger.host().detach(nb::cast<Tracker *>(tracker)))
        tracker.dec_ref();
}

nb::tuple figures_of(const Tracker &read) {
    return nb::make_tuple(read.current, read.peak, read.allocated, read.freed, read.allocations);
}

// For each device, and then for page-locked memory.
std::vector<std::pair<std::size_t, std::size_t>> take_segment_changes(Self &self) {
    std::vector<std::pair<std::size_t, std::size_t>> taken;
    const auto add = [&](SegmentChanges::Bytes bytes) { taken.emplace_back(bytes.mapped, bytes.unmapped); };
    self.ledger.each([&](DeviceLedger &ledger) { add(ledger.take_segment_changes()); });
    add(self.ledger.host().take_segment_changes());
    return taken;
}

void set_metadata(Self &self, std::string text) {
    if (text == self.metadata)
        return;
    const Metadata shared = text.empty() ? nullptr : std::make_shared<const std::string>(text);
    self.ledger.each([&](DeviceLedger &ledger) { ledger.set_metadata(shared); });
    self.ledger.host().set_metadata(shared);
    self.metadata = std::move(text);
}

} // namespace

// Adds the class Ledger to the module, and connects the ledger with Python's lock and Python's stacks.
void bind_ledger(nb::module_ &module) {
    CallerStack::connect(note_python_stack);
    connect_interpreter();

    module.def("listen_to_segments", listen_to_segments, nb::arg("function").none());

    nb::class_<ExpectedCapture>(module, "ExpectedCapture").def("end", &ExpectedCapture::end);

    nb::class_<Self>(module, "Ledger")
        .def(nb::init<Driver &, int, const Settings &, nb::object, nb::object, nb::object>(), nb::arg("driver"),
             nb::arg("devices"), nb::arg("settings"), nb::arg("fail_memory"), nb::arg("fail_driver"),
             nb::arg("relieve").none() = nb::none(), nb::keep_alive<1, 2>())
        .def("allocate", allocate, nb::arg("device"), nb::arg("size"), nb::arg("stream"))
        .def(
            "free",
            [](Self &self, Address address) {
                const bool found = self.ledger.free(address);
                Interruption::deliver();
                return found;
            },
            nb::arg("address"))
        .def(
            "record_stream",
            [](Self &self, int device, Address address, Stream stream) {
                return of(self, device).record_stream(address, key_of(stream));
            },
            nb::arg("device"), nb::arg("address"), nb::arg("stream"))
        .def(
            "stream_created", [](Self &self, int device, Stream stream) { of(self, device).stream_created(stream); },
            nb::arg("device"), nb::arg("stream"))
        .def(
            "stream_about_to_be_destroyed",
            [](Self &self, int device, Stream stream) {
                guarded_without_lock(self, [&] { of(self, device).stream_about_to_be_destroyed(stream); });
            },
            nb::arg("device"), nb::arg("stream"))
        .def(
            "size_of", [](Self &self, int device, Address address) { return of(self, device).size_of(address); },
            nb::arg("device"), nb::arg("address"))
        .def(
            "stream_of",
            [](Self &self, int device, Address address) -> nb::object {
                const auto handle = of(self, device).stream_of(address);
                return handle ? nb::cast(*handle) : nb::none();
            },
            nb::arg("device"), nb::arg("address"))
        .def(
            "stack_of", [](Self &self, int device, Address address) { return of(self, device).stack_of(address); },
            nb::arg("device"), nb::arg("address"))
        .def(
            "block_at",
            [](Self &self, int device, Address address) -> nb::object {
                const auto found = of(self, device).block_at(address);
                if (!found)
                    return nb::none();
                return nb::make_tuple(found->address, found->requested, found->size, found->allocated,
                                      found->is_private);
            },
            nb::arg("device"), nb::arg("address"))
        .def(
            "can_move", [](Self &self, int device, Address address) { return of(self, device).can_move(address); },
            nb::arg("device"), nb::arg("address"))
        .def("sharing_of", sharing_of, nb::arg("device"), nb::arg("address"))
        .def(
            "export_piece",
            [](Self &self, int device, Address address) {
                return guarded(self, [&] { return of(self, device).export_piece(address); });
            },
            nb::arg("device"), nb::arg("address"))
        .def(
            "import_pieces",
            [](Self &self, int device, const std::vector<ImportedMemory::Piece> &pieces) {
                return guarded(self, [&] { return of(self, device).import_pieces(pieces); });
            },
            nb::arg("device"), nb::arg("pieces"))
        .def(
            "use", [](Self &self, int device) { guarded_without_lock(self, [&] { self.ledger.use(device); }); },
            nb::arg("device"))
        .def(
            "release_imported",
            [](Self &self, int device, Address address) { return of(self, device).release_imported(address); },
            nb::arg("device"), nb::arg("address"))
        .def(
            "empty_cache",
            [](Self &self, int device, bool keep_spare) {
                guarded_without_lock(self, [&] { of(self, device).empty_cache(keep_spare); });
            },
            nb::arg("device"), nb::arg("keep_spare") = false)
        .def("cupy_functions", cupy_functions, nb::arg("current_stream"), nb::arg("begin"))
        .def("cupy_segment_functions", cupy_segment_functions, nb::arg("current_stream"), nb::arg("refuse"))
        .def(
            "allocate_segment",
            [](Self &self, int device, std::size_t size) { return of(self, device).allocate_segment(size); },
            nb::arg("device"), nb::arg("size"))
        .def(
            "free_segment", [](Self &self, int device, Address address) { of(self, device).free_segment(address); },
            nb::arg("device"), nb::arg("address"))
        .def("share", share_with_torch)
        .def(
            "change_source",
            [](Self &self, std::shared_ptr<ExternalSource> source) {
                return self.ledger.change_source(std::move(source));
            },
            nb::arg("source").none())
        .def(
            "change_settings",
            [](Self &self, const Settings &settings) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.change_settings(settings); });
            },
            nb::arg("settings"))
        .def(
            "set_padding",
            [](Self &self, std::size_t padding) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.set_padding(padding); });
            },
            nb::arg("padding"))
        .def(
            "keep_stacks",
            [](Self &self, bool wanted) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.keep_stacks(wanted); });
                self.ledger.host().keep_stacks(wanted);
            },
            nb::arg("wanted"))
        .def(
            "set_poison",
            [](Self &self, unsigned char value) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.set_poison(value); });
            },
            nb::arg("value"))
        .def_prop_rw(
            "caching", [](Self &self) { return self.ledger.caching(); },
            [](Self &self, bool enabled) { self.ledger.enable_caching(enabled); })
        // Pools
        .def("next_pool", [](Self &self) { return self.ledger.next_pool(); })
        .def(
            "create_pool",
            [](Self &self, int device, PoolId id, std::shared_ptr<ExternalSource> library, bool split,
               bool use_on_oom) { of(self, device).create_pool(id, std::move(library), split, use_on_oom); },
            nb::arg("device"), nb::arg("id"), nb::arg("library").none(), nb::arg("split"), nb::arg("use_on_oom"))
        .def(
            "release_pool",
            [](Self &self, int device, PoolId id) {
                guarded_without_lock(self, [&] { of(self, device).release_pool(id); });
            },
            nb::arg("device"), nb::arg("id"))
        .def(
            "pool_uses", [](Self &self, int device, PoolId id) { return of(self, device).pool_uses(id); },
            nb::arg("device"), nb::arg("id"))
        .def(
            "begin_pool",
            [](Self &self, int device, PoolId id, std::uint64_t use) { of(self, device).begin_pool(id, use); },
            nb::arg("device"), nb::arg("id"), nb::arg("use") = 0)
        .def(
            "end_pool",
            [](Self &self, int device, PoolId id, std::uint64_t use) {
                guarded_without_lock(self, [&] { of(self, device).end_pool(id, use); });
            },
            nb::arg("device"), nb::arg("id"), nb::arg("use") = 0)
        // Captures
        .def("expect_capture",
             [](Self &self) {
                 guarded(self, [&] { self.ledger.prepare_capture(); });
                 return std::make_unique<ExpectedCapture>(self);
             })
        .def("begin_capture", begin_capture, nb::arg("id"), nb::arg("device"), nb::arg("stream"))
        .def(
            "end_capture",
            [](Self &self, CaptureId capture) {
                guarded_without_lock(self, [&] { self.ledger.end_capture(capture); });
            },
            nb::arg("capture"))
        .def(
            "begin_part",
            [](Self &self, CaptureId capture, int device, Stream stream) {
                return guarded(self, [&] { return self.ledger.begin_part(capture, device, key_of(stream)); });
            },
            nb::arg("capture"), nb::arg("device"), nb::arg("stream"))
        .def(
            "end_part",
            [](Self &self, CaptureId part) { guarded_without_lock(self, [&] { self.ledger.end_part(part); }); },
            nb::arg("part"))
        .def(
            "has_capture", [](Self &self, CaptureId capture) { return self.ledger.has_capture(capture); },
            nb::arg("capture"))
        .def(
            "hold",
            [](Self &self, const std::vector<Address> &addresses, CaptureId capture) {
                return self.ledger.hold(addresses, capture);
            },
            nb::arg("addresses"), nb::arg("capture"))
        .def(
            "release_holds",
            [](Self &self, const std::vector<Address> &held, bool replayed) {
                guarded_without_lock(self, [&] { self.ledger.release_holds(held, replayed); });
            },
            nb::arg("held"), nb::arg("replayed"))
        .def(
            "release_graph",
            [](Self &self, PoolId id, const std::vector<Address> &held, bool replayed) {
                guarded_without_lock(self, [&] { self.ledger.release_graph(id, held, replayed); });
            },
            nb::arg("id"), nb::arg("held"), nb::arg("replayed"))
        // Limits
        .def(
            "set_memory_fraction",
            [](Self &self, int device, double fraction) { of(self, device).set_memory_fraction(fraction); },
            nb::arg("device"), nb::arg("fraction"))
        .def(
            "memory_fraction", [](Self &self, int device) { return of(self, device).memory_fraction(); },
            nb::arg("device"))
        // Statistics
        .def(
            "statistics", [](Self &self, int device) { return dict_of(of(self, device).statistics()); },
            nb::arg("device"))
        .def(
            "allocated", [](Self &self, int device) { return of(self, device).bytes().allocated_bytes.current; },
            nb::arg("device"))
        .def(
            "peak_allocated", [](Self &self, int device) { return of(self, device).bytes().allocated_bytes.peak; },
            nb::arg("device"))
        .def(
            "reserved", [](Self &self, int device) { return of(self, device).bytes().reserved_bytes.current; },
            nb::arg("device"))
        .def(
            "peak_reserved", [](Self &self, int device) { return of(self, device).bytes().reserved_bytes.peak; },
            nb::arg("device"))
        .def(
            "reset_peaks", [](Self &self, int device) { of(self, device).reset_peaks(); }, nb::arg("device"))
        .def(
            "reset_accumulated", [](Self &self, int device) { of(self, device).reset_accumulated(); },
            nb::arg("device"))
        .def("attach", attach, nb::arg("device"), nb::arg("tracker"))
        .def("detach", detach, nb::arg("device"), nb::arg("tracker"))
        .def(
            "read",
            [](Self &self, int device, const Tracker &tracker) { return figures_of(of(self, device).read(tracker)); },
            nb::arg("device"), nb::arg("tracker"))
        // History
        .def(
            "record_history",
            [](Self &self, Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear) {
                self.ledger.each(
                    [&](DeviceLedger &ledger) { ledger.record_history(stacks, capacity, skipped, clear); });
                self.ledger.host().record_history(stacks, capacity, skipped, clear);
            },
            nb::arg("stacks"), nb::arg("capacity"), nb::arg("skipped"), nb::arg("clear"))
        .def("stop_history",
             [](Self &self) {
                 self.ledger.each([](DeviceLedger &ledger) { ledger.stop_history(); });
                 self.ledger.host().stop_history();
             })
        .def("take_segment_changes", take_segment_changes)
        .def("set_metadata", set_metadata, nb::lock_self(), nb::arg("text"))
        .def(
            "metadata", [](Self &self) { return self.metadata; }, nb::lock_self())
        .def(
            "snapshot",
            [](Self &self, std::optional<PoolId> pool, bool traces) { return snapshot_of(self.ledger, pool, traces); },
            nb::lock_self(), nb::arg("pool").none(), nb::arg("traces"))
        // Page-locked memory of the host
        .def("host_statistics", [](Self &self) { return dict_of(self.ledger.host().statistics()); })
        .def(
            "host_snapshot", [](Self &self) { return host_snapshot_of(self.ledger.host()); }, nb::lock_self())
        .def("attach_to_host", attach_to_host, nb::arg("tracker"))
        .def("detach_from_host", detach_from_host, nb::arg("tracker"))
        .def(
            "read_host",
            [](Self &self, const Tracker &tracker) { return figures_of(self.ledger.host().read(tracker)); },
            nb::arg("tracker"))
        .def("reset_host_peaks", [](Self &self) { self.ledger.host().reset_peaks(); })
        .def("reset_host_accumulated", [](Self &self) { self.ledger.host().reset_accumulated(); })
        .def(
            "change_host_settings",
            [](Self &self, bool registers_pages, unsigned threads, std::size_t reserved_segment,
               bool background_thread) {
                self.ledger.host().change_settings({registers_pages, threads, reserved_segment, background_thread});
            },
            nb::arg("registers_pages"), nb::arg("threads"), nb::arg("reserved_segment"), nb::arg("background_thread"))
        .def("begin_host_rest", [](Self &self) { self.ledger.host().begin_rest(); })
        .def("end_host_rest", [](Self &self) { self.ledger.host().end_rest(); })
        .def(
            "host_allocation_at", [](Self &self, Address address) { return self.ledger.host().allocation_at(address); },
            nb::arg("address"))
        .def("empty_host_cache",
             [](Self &self) { guarded_without_lock(self, [&] { self.ledger.host().empty_cache(); }); })
        // The end of the process
        .def("abandon", [](Self &self) { self.ledger.abandon(); })
        .def("close", [](Self &self) { self.ledger.close(); });
}

} // namespace tcuda
