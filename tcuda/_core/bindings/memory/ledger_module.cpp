#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <tuple>
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

const char *put_to_sleep(Self &self, int device, PoolId id, bool keep, const std::vector<Address> &shared) {
    auto refusal = Sleeper::Refusal::none;
    guarded_without_lock(self, [&] { refusal = self.ledger.sleep(device, id, keep, shared); });
    switch (refusal) {
    case Sleeper::Refusal::moving:
        return "moving";
    case Sleeper::Refusal::capture:
        return "capture";
    case Sleeper::Refusal::shared:
        return "shared";
    case Sleeper::Refusal::other_source:
        return "other source";
    case Sleeper::Refusal::segments:
        return "segments";
    case Sleeper::Refusal::none:
        break;
    }
    return "";
}

std::tuple<bool, std::size_t, std::size_t, bool> wake(Self &self, int device, PoolId id) {
    Sleeper::Lack lack;
    auto refusal = Sleeper::Refusal::none;
    bool awake = true;
    guarded_without_lock(self, [&] { awake = of(self, device).wake(id, &lack, &refusal); });
    if (awake)
        lack = {};
    else
        lack.needed = std::max<std::size_t>(lack.needed, 1); // 0 says that the pool is awake
    return {refusal == Sleeper::Refusal::moving, lack.needed, lack.available, lack.limited};
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

    module.def("listen_to_segments", listen_to_segments, nb::arg("function").none(),
               nb::sig("def listen_to_segments(function: Callable[[], object] | None) -> None"), R"(
    Let the main thread call ``function`` soon after memory of a segment came from the driver or went back.

    Segments that follow each other closely share a call. None ends the calls.)");

    nb::class_<ExpectedCapture>(module, "ExpectedCapture", R"(
    A time in which no event is recorded for page-locked memory: until :meth:`end`, or until the object dies.)")
        .def("end", &ExpectedCapture::end, "End the time. A second call does nothing.");

    nb::class_<Self>(module, "Ledger", R"(
    The ledger of all devices, through which every allocation goes.

    Args:
        driver: The table of the devices.
        devices: The number of devices.
        settings: The options of the caching allocator.
        fail_memory: A function that raises the error for a lack of memory: ``fail_memory(**facts)``.
        fail_driver: A function that raises the error for a call that failed: ``fail_driver(status, call)``.
        relieve: A function that may free memory of a device without room: ``relieve(device, size)`` returns whether to
            try the allocation again. None for no function.)")
        .def(nb::init<Driver &, int, const Settings &, nb::object, nb::object, nb::object>(), nb::arg("driver"),
             nb::arg("devices"), nb::arg("settings"), nb::arg("fail_memory"), nb::arg("fail_driver"),
             nb::arg("relieve").none() = nb::none(), nb::keep_alive<1, 2>(),
             nb::sig("def __init__(self, driver: Driver, devices: int, settings: Settings, fail_memory: Callable[..., "
                     "NoReturn], fail_driver: Callable[[int, str], NoReturn], relieve: Callable[[int, int], bool] | "
                     "None=None) -> None"))
        .def("allocate", allocate, nb::arg("device"), nb::arg("size"), nb::arg("stream"),
             "Return the address of ``size`` bytes for use on ``stream``.")
        .def(
            "free",
            [](Self &self, Address address) {
                const bool found = self.ledger.free(address);
                Interruption::deliver();
                return found;
            },
            nb::arg("address"), R"(
        Free the allocation that begins at ``address``.

        Returns:
            False, with nothing changed, if no live allocation begins there.)")
        .def(
            "record_stream",
            [](Self &self, int device, Address address, Stream stream) {
                return of(self, device).record_stream(address, key_of(stream));
            },
            nb::arg("device"), nb::arg("address"), nb::arg("stream"), R"(
        Note that ``stream`` uses the allocation: once freed, its memory is reused only after that stream's work.

        Returns:
            False if no live allocation begins at ``address``.)")
        .def(
            "stream_created", [](Self &self, int device, Stream stream) { of(self, device).stream_created(stream); },
            nb::arg("device"), nb::arg("stream"), "Let the ledger ask the driver about the stream by its handle.")
        .def(
            "stream_about_to_be_destroyed",
            [](Self &self, int device, Stream stream) {
                guarded_without_lock(self, [&] { of(self, device).stream_about_to_be_destroyed(stream); });
            },
            nb::arg("device"), nb::arg("stream"), "Forbid the ledger to use the handle of the stream.")
        .def(
            "size_of", [](Self &self, int device, Address address) { return of(self, device).size_of(address); },
            nb::arg("device"), nb::arg("address"),
            "Return the size of the allocation that begins at ``address``, 0 if no live allocation begins there.")
        .def(
            "stream_of",
            [](Self &self, int device, Address address) -> nb::object {
                const auto handle = of(self, device).stream_of(address);
                return handle ? nb::cast(*handle) : nb::none();
            },
            nb::arg("device"), nb::arg("address"),
            nb::sig("def stream_of(self, device: int, address: int) -> int | None"), R"(
        Return the handle of the stream for which the allocation that begins at ``address`` was made.

        Returns:
            None if no live allocation begins there, if the stream is destroyed, or if the stream is the default stream
            of another thread.)")
        .def(
            "stack_of", [](Self &self, int device, Address address) { return of(self, device).stack_of(address); },
            nb::arg("device"), nb::arg("address"), R"(
        Return the number of the Python stack of the allocation that begins at ``address``.

        Returns:
            0 if no live allocation begins there, or if its stack is not noted.)")
        .def(
            "block_at",
            [](Self &self, int device, Address address) -> nb::object {
                const auto found = of(self, device).block_at(address);
                if (!found)
                    return nb::none();
                return nb::make_tuple(found->address, found->requested, found->size, found->allocated,
                                      found->is_private);
            },
            nb::arg("device"), nb::arg("address"),
            nb::sig("def block_at(self, device: int, address: int) -> tuple[int, int, int, bool, bool] | None"), R"(
        Return the block that contains ``address``; None if no block contains the address.

        The call visits the segments and the blocks of one segment.

        Returns:
            The address of the block, the requested size, the size, whether the block is allocated, and whether the
            block belongs to a private pool.)")
        .def(
            "can_move", [](Self &self, int device, Address address) { return of(self, device).can_move(address); },
            nb::arg("device"), nb::arg("address"), R"(
        Return whether the program may keep the contents of the allocation that begins at ``address`` elsewhere.

        Returns:
            False if no live allocation begins there, if a graph or a capture needs the address, and for memory of a
            private pool.)")
        .def("sharing_of", sharing_of, nb::arg("device"), nb::arg("address"),
             nb::sig(
                 "def sharing_of(self, device: int, address: int) -> tuple[int, int, list[int], list[tuple[int, int]], "
                 "tuple[int, int] | None, int] | None"),
             R"(
        Return how other processes can open the allocation that begins at ``address``, None if none begins there.

        Returns:
            The address and the size of the block; the handles of the streams that use it, as far as this thread has
            handles for them; the address and the size of each piece of physical memory that contains the block, in
            order and without gaps; the address and the size of the allocation of the driver that contains the block;
            and the number of the piece that was created last. There are no pieces outside of expandable segments, and
            the number is then 0. There is no allocation inside of them, and if the driver knows none. A process counts
            the pieces that it creates. So pieces with the same addresses and the same last number are the same physical
            memory.)")
        .def(
            "export_piece",
            [](Self &self, int device, Address address) {
                return guarded(self, [&] { return of(self, device).export_piece(address); });
            },
            nb::arg("device"), nb::arg("address"), R"(
        Return a new file descriptor for the piece of physical memory that begins at ``address``.

        The caller closes the descriptor, and keeps an allocation in the piece until then.)")
        .def(
            "import_pieces",
            [](Self &self, int device, const std::vector<ImportedMemory::Piece> &pieces) {
                return guarded(self, [&] { return of(self, device).import_pieces(pieces); });
            },
            nb::arg("device"), nb::arg("pieces"), R"(
        Map pieces of another process side by side, and return the address.

        Args:
            device: The device.
            pieces: A descriptor and the size of each piece. The descriptors stay the caller's.)")
        .def(
            "use", [](Self &self, int device) { guarded_without_lock(self, [&] { self.ledger.use(device); }); },
            nb::arg("device"), R"(
        Take the device into use, so that the device can access all imported memory that its links reach.

        A device with an active context can access the memory that is imported later.)")
        .def(
            "release_imported",
            [](Self &self, int device, Address address) { return of(self, device).release_imported(address); },
            nb::arg("device"), nb::arg("address"),
            "Unmap what :meth:`import_pieces` has mapped at ``address``; return False if nothing was mapped there.")
        .def(
            "empty_cache",
            [](Self &self, int device, bool keep_spare) {
                guarded_without_lock(self, [&] { of(self, device).empty_cache(keep_spare); });
            },
            nb::arg("device"), nb::arg("keep_spare") = false,
            "Give free memory back to the device, but not the small pool for the next capture if ``keep_spare``.")
        .def("cupy_functions", cupy_functions, nb::arg("current_stream"), nb::arg("begin"),
             nb::sig(
                 "def cupy_functions(self, current_stream: object, begin: Callable[[int], object]) -> tuple[int, int, "
                 "int]"),
             R"(
        Return ``param``, ``malloc`` and ``free`` for ``CFunctionAllocator``; the ledger then lives for ever.

        Args:
            current_stream: A capsule with CuPy's C function that returns the handle of the current stream.
            begin: A function that is called with the index of a device before the first allocation on the device.)")
        .def("cupy_segment_functions", cupy_segment_functions, nb::arg("current_stream"), nb::arg("refuse"),
             nb::sig("def cupy_segment_functions(self, current_stream: object, refuse: Callable[[], NoReturn]) -> "
                     "tuple[int, int, int]"),
             R"(
        Return the same functions for the segments of a CuPy pool.

        Args:
            current_stream: The same as for :meth:`cupy_functions`.
            refuse: A function that raises the exception that the pool takes for a lack of memory.)")
        .def(
            "allocate_segment",
            [](Self &self, int device, std::size_t size) { return of(self, device).allocate_segment(size); },
            nb::arg("device"), nb::arg("size"),
            "Return the address of a new segment for a source that reports its segments, 0 if there is no memory.")
        .def(
            "free_segment", [](Self &self, int device, Address address) { of(self, device).free_segment(address); },
            nb::arg("device"), nb::arg("address"), "Give back a segment of :meth:`allocate_segment`.")
        .def("share", share_with_torch,
             "Let the functions that torch loads use this ledger, which then lives for ever.")
        .def(
            "change_source",
            [](Self &self, std::shared_ptr<ExternalSource> source) {
                return self.ledger.change_source(std::move(source));
            },
            nb::arg("source").none(), R"(
        Take memory from ``source``, or from the caching allocator for None.

        Returns:
            False, with nothing changed, if memory was allocated before.)")
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
            nb::arg("padding"),
            "Leave ``padding`` bytes, a multiple of 512, behind each later allocation of the caching allocator.")
        .def(
            "keep_stacks",
            [](Self &self, bool wanted) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.keep_stacks(wanted); });
                self.ledger.host().keep_stacks(wanted);
            },
            nb::arg("wanted"),
            "Note the stacks of later allocations also while no history is recorded, or no longer do so.")
        .def(
            "set_poison",
            [](Self &self, unsigned char value) {
                self.ledger.each([&](DeviceLedger &ledger) { ledger.set_poison(value); });
            },
            nb::arg("value"),
            "Fill memory with the byte ``value``, in stream order, when it is handed out and when it is freed.")
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
            nb::arg("device"), nb::arg("id"), nb::arg("use") = 0,
            "End the use of this number, from any thread, or for 0 the latest use of this thread, if there is one.")
        .def("sleep", put_to_sleep, nb::arg("device"), nb::arg("id"), nb::arg("keep"), nb::arg("shared"), R"(
        Take the memory of a pool away, and keep its addresses, after all work of the device.

        Args:
            device: The device.
            id: The pool; (0, 0) for the common pool and all pools of which the program has no object.
            keep: Whether to keep the contents, in page-locked memory of the host.
            shared: The addresses of allocations that other processes may use.

        Returns:
            Why the pool stays awake: "moving" if another thread puts the pool to sleep or wakes the pool, "capture",
            "shared", "other source", or "segments" for memory outside of expandable segments; or an empty text.)")
        .def("wake", wake, nb::arg("device"), nb::arg("id"), R"(
        Give a pool memory with the kept contents, at the same addresses.

        Returns:
            Whether another thread puts the pool to sleep or wakes the pool, so that nothing has changed; and the bytes
            that the pool needs, the bytes that there are, and whether a limit of the program leaves no more. These
            numbers are 0 unless the memory is missing, and the pool is then still asleep.)")
        .def(
            "is_asleep", [](Self &self, int device, PoolId id) { return of(self, device).is_asleep(id); },
            nb::arg("device"), nb::arg("id"))
        .def(
            "sleeping_pool",
            [](Self &self, int device, Address address) { return of(self, device).sleeping_pool(address); },
            nb::arg("device"), nb::arg("address"),
            nb::sig("def sleeping_pool(self, device: int, address: int) -> tuple[int, int] | None"),
            "Return the pool that is asleep and whose block contains ``address``; None without such a pool.")
        // Captures
        .def(
            "expect_capture",
            [](Self &self) {
                guarded(self, [&] { self.ledger.prepare_capture(); });
                return std::make_unique<ExpectedCapture>(self);
            },
            R"(
        Wait until no thread records an event behind all work of a device, and let none be recorded.

        Before that, the memory of released graphs that no work uses is made ready for the capture.)")
        .def("begin_capture", begin_capture, nb::arg("id"), nb::arg("device"), nb::arg("stream"), R"(
        Let allocations on the streams of a capture come from a pool, and keep the memory that this thread frees.

        The graph of the capture uses the pool.

        Args:
            id: The pool.
            device: The device of the stream.
            stream: The stream on which the capture has begun.

        Returns:
            The number of the capture.)")
        .def(
            "end_capture",
            [](Self &self, CaptureId capture) {
                guarded_without_lock(self, [&] { self.ledger.end_capture(capture); });
            },
            nb::arg("capture"), "Let memory be allocated and freed as before the capture.")
        .def(
            "begin_part",
            [](Self &self, CaptureId capture, int device, Stream stream) {
                return guarded(self, [&] { return self.ledger.begin_part(capture, device, key_of(stream)); });
            },
            nb::arg("capture"), nb::arg("device"), nb::arg("stream"),
            "Treat what ``stream`` has begun to capture as a part of ``capture``, and return the number of the part.")
        .def(
            "end_part",
            [](Self &self, CaptureId part) { guarded_without_lock(self, [&] { self.ledger.end_part(part); }); },
            nb::arg("part"), "End a part of a capture; nothing happens if there is no such part.")
        .def(
            "has_capture", [](Self &self, CaptureId capture) { return self.ledger.has_capture(capture); },
            nb::arg("capture"), "Return whether the capture has begun and has not ended.")
        .def(
            "hold",
            [](Self &self, const std::vector<Address> &addresses, CaptureId capture) {
                return self.ledger.hold(addresses, capture);
            },
            nb::arg("addresses"), nb::arg("capture"), R"(
        Keep the allocations that contain these addresses and are older than the capture; return where they begin.

        Page-locked allocations of the host are kept too. Their addresses are returned as they are.)")
        .def(
            "release_holds",
            [](Self &self, const std::vector<Address> &held, bool replayed) {
                guarded_without_lock(self, [&] { self.ledger.release_holds(held, replayed); });
            },
            nb::arg("held"), nb::arg("replayed"), R"(
        Release the allocations that :meth:`hold` returned.

        Args:
            held: The allocations.
            replayed: Whether the graph was launched. The allocations are then released after the work of the
                devices.)")
        .def(
            "release_graph",
            [](Self &self, PoolId id, const std::vector<Address> &held, bool replayed) {
                guarded_without_lock(self, [&] { self.ledger.release_graph(id, held, replayed); });
            },
            nb::arg("id"), nb::arg("held"), nb::arg("replayed"), R"(
        Release the allocations that :meth:`hold` returned, and the pool.

        Args:
            id: The pool.
            held: The allocations.
            replayed: Whether the graph was launched. The allocations are then released after the work of the
                devices.)")
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
            "statistics",
            [](Self &self, int device) {
                DeviceLedger &ledger = of(self, device);
                return dict_of(ledger.statistics(), ledger.pool_bytes());
            },
            nb::arg("device"), nb::sig("def statistics(self, device: int) -> dict[str, int]"))
        .def(
            "scope_bytes",
            [](Self &self, int device) {
                nb::list found = new_list();
                for (const Counter &counter : of(self, device).scope_bytes())
                    found.append(nb::make_tuple(counter.current, counter.peak, counter.allocated, counter.freed));
                return found;
            },
            nb::arg("device"), nb::sig("def scope_bytes(self, device: int) -> list[tuple[int, int, int, int]]"),
            "Return the bytes of each name of scopes: current, peak, allocated and freed. The list may end early.")
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
        .def("attach", attach, nb::arg("device"), nb::arg("tracker"),
             nb::sig("def attach(self, device: int, tracker: Tracker) -> None"))
        .def("detach", detach, nb::arg("device"), nb::arg("tracker"),
             nb::sig("def detach(self, device: int, tracker: Tracker) -> None"))
        .def(
            "read",
            [](Self &self, int device, const Tracker &tracker) { return figures_of(of(self, device).read(tracker)); },
            nb::arg("device"), nb::arg("tracker"),
            nb::sig("def read(self, device: int, tracker: Tracker) -> tuple[int, int, int, int, int]"))
        // History
        .def(
            "record_history",
            [](Self &self, Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear) {
                self.ledger.each(
                    [&](DeviceLedger &ledger) { ledger.record_history(stacks, capacity, skipped, clear); });
                self.ledger.host().record_history(stacks, capacity, skipped, clear);
            },
            nb::arg("stacks"), nb::arg("capacity"), nb::arg("skipped"), nb::arg("clear"))
        .def("records_history", [](Self &self) { return self.ledger.host().records_history(); })
        .def("stop_history",
             [](Self &self) {
                 self.ledger.each([](DeviceLedger &ledger) { ledger.stop_history(); });
                 self.ledger.host().stop_history();
             })
        .def(
            "report_to_nvtx",
            [](Self &self, const std::string &path) {
                self.nvtx = std::make_unique<NvtxMemory>(path.c_str());
                if (!self.nvtx->is_attached())
                    return false;
                self.ledger.each([&](DeviceLedger &ledger) { ledger.observe(self.nvtx.get()); });
                return true;
            },
            nb::arg("path"), R"(
        Tell a tool of all arrays in segments from now on, by NVTX's extension for memory.

        Args:
            path: The library of the tool.

        Returns:
            Whether the tool knows the extension.)")
        .def("take_segment_changes", take_segment_changes, R"(
        Return how many bytes of segments came from the driver and went back since the last call.

        Returns:
            Both numbers for each device, and then those of the page-locked memory of the host.)")
        .def("set_metadata", set_metadata, nb::lock_self(), nb::arg("text"))
        .def(
            "metadata", [](Self &self) { return self.metadata; }, nb::lock_self())
        .def(
            "snapshot",
            [](Self &self, std::optional<PoolId> pool, bool traces) { return snapshot_of(self.ledger, pool, traces); },
            nb::lock_self(), nb::arg("pool").none(), nb::arg("traces"),
            nb::sig("def snapshot(self, pool: tuple[int, int] | None, traces: bool) -> tuple[list[dict[str, Any]], "
                    "list[list[dict[str, Any]]]]"))
        // Page-locked memory of the host
        .def(
            "host_statistics", [](Self &self) { return dict_of(self.ledger.host().statistics()); },
            nb::sig("def host_statistics(self) -> dict[str, int]"),
            "Return the statistics of the page-locked memory of the host.")
        .def(
            "host_snapshot", [](Self &self) { return host_snapshot_of(self.ledger.host()); }, nb::lock_self(),
            nb::sig("def host_snapshot(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]"),
            "Return the segments of page-locked memory and their events, with the keys of those of a device.")
        .def("attach_to_host", attach_to_host, nb::arg("tracker"),
             nb::sig("def attach_to_host(self, tracker: Tracker) -> None"),
             "Let ``tracker``, which is attached to no device, measure page-locked memory.")
        .def("detach_from_host", detach_from_host, nb::arg("tracker"),
             nb::sig("def detach_from_host(self, tracker: Tracker) -> None"))
        .def(
            "read_host",
            [](Self &self, const Tracker &tracker) { return figures_of(self.ledger.host().read(tracker)); },
            nb::arg("tracker"), nb::sig("def read_host(self, tracker: Tracker) -> tuple[int, int, int, int, int]"))
        .def("reset_host_peaks", [](Self &self) { self.ledger.host().reset_peaks(); })
        .def("reset_host_accumulated", [](Self &self) { self.ledger.host().reset_accumulated(); })
        .def(
            "change_host_settings",
            [](Self &self, bool registers_pages, unsigned threads, std::size_t reserved_segment,
               bool background_thread) {
                self.ledger.host().change_settings({registers_pages, threads, reserved_segment, background_thread});
            },
            nb::arg("registers_pages"), nb::arg("threads"), nb::arg("reserved_segment"), nb::arg("background_thread"),
            R"(
        Set the options of page-locked memory; segments that exist stay as they are.

        Args:
            registers_pages: Whether segments are pages of the process that the driver locks.
            threads: The number of threads that touch such pages before.
            reserved_segment: The bytes of the first segment for small blocks; 0 for the usual size.
            background_thread: Whether a thread asks the devices about freed blocks.)")
        .def(
            "begin_host_rest", [](Self &self) { self.ledger.host().begin_rest(); },
            "Let the thread of the settings ask nothing until :meth:`end_host_rest`.")
        .def("end_host_rest", [](Self &self) { self.ledger.host().end_rest(); })
        .def(
            "host_allocation_at", [](Self &self, Address address) { return self.ledger.host().allocation_at(address); },
            nb::arg("address"),
            "Return address and size of the page-locked allocation that contains ``address``; zeros if none does.")
        .def(
            "empty_host_cache",
            [](Self &self) { guarded_without_lock(self, [&] { self.ledger.host().empty_cache(); }); },
            "Give unused page-locked memory back to the driver, after the work of all devices.")
        // The end of the process
        .def(
            "abandon", [](Self &self) { self.ledger.abandon(); }, "Let frees do nothing; for a forked child.")
        .def(
            "close", [](Self &self) { self.ledger.close(); },
            "Let frees change the statistics only; for a process that is exiting.");
}

} // namespace tcuda
