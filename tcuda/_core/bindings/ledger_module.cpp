// Python face of the ledger.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "bindings/block_allocator.hpp"
#include "driver/faulty_driver.hpp"
#include "bindings/interruption.hpp"
#include "ledger/ledger.hpp"
#include "bindings/ledger_module.hpp"
#include "bindings/python_sources.hpp"
#include "bindings/python_stacks.hpp"
#include "driver/stream_key.hpp"
#include "ledger/torch_face.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// A ledger, with what Python raises for its failures.
struct PythonLedger {
    PythonLedger(Driver &driver, int devices, const Settings &settings, nb::object fail_memory, nb::object fail_driver)
        : ledger(driver, devices, settings), fail_memory(std::move(fail_memory)), fail_driver(std::move(fail_driver)) {}

    struct Last {
        ~Last() { Interruption::deliver(); } // of the end of the ledger, which destroys events
    } last;
    Ledger ledger;
    nb::object fail_memory, fail_driver; // called with the facts; they raise
    std::string metadata;
};

// Which stream CuPy launches on in this thread.
using CurrentStream = std::intptr_t();

// Sets the Python error for the C++ exception that is being handled, or for the interruption that has led to it.
void set_error(const PythonLedger &ledger) noexcept {
    if (Interruption::restore())
        return;
    try {
        try {
            throw;
        } catch (const OutOfMemory &facts) {
            nb::dict told;
            told["device"] = facts.device;
            told["requested"] = facts.requested;
            told["total"] = facts.total;
            told["free"] = facts.free;
            told["limit"] = facts.limited ? nb::object(nb::int_(facts.limit)) : nb::none();
            told["allocated"] = facts.allocated;
            told["reserved"] = facts.reserved;
            told["largest_free"] = facts.largest_free;
            ledger.fail_memory(**told);
        } catch (const DriverError &error) {
            ledger.fail_driver(error.status, error.call);
        } catch (const DuplicatePointer &error) {
            PyErr_Format(PyExc_RuntimeError,
                         "The allocator returned %p, which it had returned before and which is still in use. Its alloc "
                         "function must return memory of its own for every call.",
                         reinterpret_cast<void *>(error.address));
            return;
        }
        PyErr_SetString(PyExc_SystemError, "a failure of the ledger raised nothing");
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

[[noreturn]] void raise(const PythonLedger &ledger) {
    set_error(ledger);
    nb::raise_python_error();
}

template <typename Call> auto guarded(PythonLedger &self, Call call) {
    try {
        return call();
    } catch (...) {
        raise(self);
    }
}

// As guarded(), for calls that may wait for a device: other threads of Python run meanwhile. They may give memory back,
// for which the history has the stack of the caller.
template <typename Call> void unlocked(PythonLedger &self, Call call) {
    try {
        const NotedCall noted = self.ledger.noted_call();
        const nb::gil_scoped_release release;
        call();
    } catch (...) {
        raise(self);
    }
    Interruption::raise_if_any();
}

Address allocate(PythonLedger &self, int device, std::size_t size, Stream stream, std::size_t *block_size = nullptr) {
    const Address address = guarded(self, [&] { return self.ledger.allocate(device, size, stream, block_size); });
    if (Interruption::pending())
        self.ledger.of(device).free(address);
    Interruption::raise_if_any();
    return address;
}

CaptureId begin_capture(PythonLedger &self, PoolId id, int device, Stream stream) {
    const CaptureId capture = guarded(self, [&] { return self.ledger.begin_capture(id, device, stream); });
    if (Interruption::pending()) {
        self.ledger.end_capture(capture);
        self.ledger.release_graph(id, {}, false);
    }
    Interruption::raise_if_any();
    return capture;
}

// CuPy's CFunctionAllocator calls these two; what is thrown reaches the caller as the Python error that was set.

struct CupyFace {
    PythonLedger &self;
    CurrentStream *current_stream;
    nb::object refuse; // raises what CuPy's pool takes for a lack of memory
};

void *cupy_allocate(void *param, std::size_t size, int device) {
    const auto &face = *static_cast<const CupyFace *>(param);
    try {
        const Stream stream = key_of(static_cast<Stream>(face.current_stream()));
        std::size_t block_size = size;
        const Address address = face.self.ledger.allocate(device, size, stream, &block_size);
        if (block_size != size)
            larger_block() = block_size;
        return reinterpret_cast<void *>(address);
    } catch (...) {
        set_error(face.self);
        throw std::bad_alloc();
    }
}

void cupy_free(void *param, void *address, int device) {
    static_cast<const CupyFace *>(param)->self.ledger.of(device).free(reinterpret_cast<Address>(address));
}

// The same for the segments of a CuPy pool.
void *cupy_allocate_segment(void *param, std::size_t size, int device) {
    const auto &face = *static_cast<const CupyFace *>(param);
    try {
        const Address address = face.self.ledger.of(device).allocate_segment(size);
        if (address != 0)
            return reinterpret_cast<void *>(address);
        face.refuse();
        PyErr_SetString(PyExc_SystemError, "a failure of the ledger raised nothing");
    } catch (...) {
        set_error(face.self);
    }
    throw std::bad_alloc();
}

void cupy_free_segment(void *param, void *address, int device) {
    static_cast<const CupyFace *>(param)->self.ledger.of(device).free_segment(reinterpret_cast<Address>(address));
}

nb::tuple addresses(PythonLedger &self, nb::handle current_stream, nb::object refuse, void *allocate, void *free) {
    auto *function = PyCapsule_GetPointer(current_stream.ptr(), PyCapsule_GetName(current_stream.ptr()));
    if (function == nullptr)
        nb::raise_python_error();
    // Arrays hold the address of the face, and may outlive everything: face and ledger live for ever.
    auto *face = new CupyFace{self, reinterpret_cast<CurrentStream *>(function), std::move(refuse)};
    nb::find(self).inc_ref();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(face), reinterpret_cast<std::uintptr_t>(allocate),
                          reinterpret_cast<std::uintptr_t>(free));
}

class TorchFace : public Shared {
public:
    explicit TorchFace(PythonLedger &self) : self_(self) {}

    void *allocate(std::size_t size, int device, Stream stream) override {
        try {
            return reinterpret_cast<void *>(self_.ledger.allocate(device, size, key_of(stream)));
        } catch (...) {
            const nb::gil_scoped_acquire lock;
            set_error(self_);
            const nb::python_error error;
            if (!error.matches(PyExc_Exception)) { // as KeyboardInterrupt, which no error of torch's stands for
                Interruption::keep(error);
                Interruption::deliver();
            }
            throw std::runtime_error(nb::str(error.value()).c_str());
        }
    }
    void free(Address address, int device) override { self_.ledger.of(device).free(address); }
    void record_stream(Address address, Stream stream) override {
        self_.ledger.each([&](DeviceLedger &ledger) { ledger.record_stream(address, key_of(stream)); });
    }

private:
    PythonLedger &self_;
};

// Statistics

nb::object key(const std::string &name) {
    PyObject *text = PyUnicode_InternFromString(name.c_str());
    if (text == nullptr)
        nb::raise_python_error();
    return nb::steal(text);
}

// The keys of memory_stats(), in order, and where their values are.
struct StatisticsKeys {
    struct Entry {
        nb::object key;
        std::size_t offset;
    };
    std::vector<Entry> entries;

    StatisticsKeys() {
        static Statistics sample;
        const auto *base = reinterpret_cast<const char *>(&sample);
        const auto add = [&](const std::string &name, const std::int64_t &value) {
            entries.push_back({key(name), static_cast<std::size_t>(reinterpret_cast<const char *>(&value) - base)});
        };
        const auto add_counter = [&](const std::string &name, const Counter &counter) {
            add(name + ".allocated", counter.allocated);
            add(name + ".current", counter.current);
            add(name + ".freed", counter.freed);
            add(name + ".peak", counter.peak);
        };
        const auto add_pooled = [&](const std::string &name, const PooledCounter &counter) {
            add_counter(name + ".all", counter.all);
            add_counter(name + ".large_pool", counter.large);
            add_counter(name + ".small_pool", counter.small);
        };
        add_pooled("active", sample.active);
        add_pooled("active_bytes", sample.active_bytes);
        add_pooled("allocated_bytes", sample.allocated_bytes);
        add_pooled("allocation", sample.allocation);
        add_pooled("inactive_split", sample.inactive_split);
        add_pooled("inactive_split_bytes", sample.inactive_split_bytes);
        add("max_split_size", sample.max_split_size);
        add("num_alloc_retries", sample.num_alloc_retries);
        add("num_device_alloc", sample.num_device_alloc);
        add("num_device_free", sample.num_device_free);
        add("num_ooms", sample.num_ooms);
        add("num_sync_all_streams", sample.num_sync_all_streams);
        add_counter("oversize_allocations", sample.oversize_allocations);
        add_counter("oversize_segments", sample.oversize_segments);
        add_pooled("requested_bytes", sample.requested_bytes);
        add_pooled("reserved_bytes", sample.reserved_bytes);
        add_pooled("segment", sample.segment);
    }
};

nb::dict statistics(PythonLedger &self, int device) {
    static const auto *const keys = new StatisticsKeys;
    const Statistics statistics = self.ledger.of(device).statistics();
    const auto *base = reinterpret_cast<const char *>(&statistics);
    nb::dict told;
    for (const auto &[key, offset] : keys->entries) {
        PyObject *value = PyLong_FromLongLong(*reinterpret_cast<const std::int64_t *>(base + offset));
        const bool failed = value == nullptr || PyDict_SetItem(told.ptr(), key.ptr(), value) != 0;
        Py_XDECREF(value);
        if (failed)
            nb::raise_python_error();
    }
    return told;
}

// Snapshots

// Builds dictionaries with keys that are made once, and shares the frames of equal stacks.
class Describer {
public:
    nb::object frames(StackId stack) {
        auto &known = frames_[stack];
        if (!known.is_valid()) {
            known = nb::steal(frames_of(stack));
            if (!known.is_valid())
                nb::raise_python_error();
        }
        return known;
    }

    nb::dict segment(int device, const SegmentView &view) {
        static const auto *const keys = new std::array<nb::object, 12>{
            key("device"),        key("address"),        key("total_size"),   key("allocated_size"), key("active_size"),
            key("requested_size"), key("stream"),        key("segment_type"), key("segment_pool_id"), key("is_expandable"),
            key("frames"),        key("blocks")};
        std::size_t allocated = 0, active = 0, requested = 0;
        nb::list blocks;
        for (const BlockView &block : view.blocks) {
            if (block.state == Block::State::allocated)
                allocated += block.size;
            if (block.state != Block::State::free) {
                active += block.size;
                requested += block.requested;
            }
            blocks.append(this->block(block));
        }
        nb::dict made;
        const auto &k = *keys;
        made[k[0]] = device;
        made[k[1]] = view.address;
        made[k[2]] = view.size;
        made[k[3]] = allocated;
        made[k[4]] = active;
        made[k[5]] = requested;
        made[k[6]] = shown(view.stream);
        made[k[7]] = view.is_large ? "large" : "small";
        made[k[8]] = nb::make_tuple(view.pool.first, view.pool.second);
        made[k[9]] = view.expandable;
        made[k[10]] = frames(view.stack);
        made[k[11]] = blocks;
        return made;
    }

    nb::dict event(const Occurrence &event) {
        static const auto *const keys = new std::array<nb::object, 9>{
            key("action"), key("addr"), key("size"), key("stream"), key("time_us"),
            key("compile_context"), key("user_metadata"), key("frames"), key("device_free")};
        static const auto *const names = new std::array<nb::object, actions>{
            key("alloc"), key("free_requested"), key("free_completed"), key("segment_alloc"), key("segment_free"),
            key("segment_map"), key("segment_unmap"), key("snapshot"), key("oom")};
        static const auto *const unknown = new nb::object(key("N/A"));
        nb::dict made;
        const auto &k = *keys;
        made[k[0]] = (*names)[static_cast<std::size_t>(event.action)];
        made[event.action == Action::oom ? k[8] : k[1]] = event.address;
        made[k[2]] = event.size;
        made[k[3]] = shown(event.stream);
        made[k[4]] = event.microseconds;
        made[k[5]] = *unknown;
        made[k[6]] = event.metadata == nullptr ? std::string() : *event.metadata;
        made[k[7]] = frames(event.stack);
        return made;
    }

private:
    static Stream shown(Stream key) { return (key & 1) == 0 ? key : per_thread_stream; }

    nb::dict block(const BlockView &view) {
        static const auto *const keys = new std::array<nb::object, 5>{key("address"), key("size"), key("requested_size"),
                                                                      key("state"), key("frames")};
        static const auto *const states = new std::array<nb::object, 5>{
            key("inactive"), key("inactive"), key("inactive"), key("active_allocated"), key("active_pending_free")};
        nb::dict made;
        const auto &k = *keys;
        made[k[0]] = view.address;
        made[k[1]] = view.size;
        made[k[2]] = view.requested;
        made[k[3]] = (*states)[static_cast<std::size_t>(view.state)];
        made[k[4]] = frames(view.stack);
        return made;
    }

    std::unordered_map<StackId, nb::object> frames_;
};

nb::tuple snapshot(PythonLedger &self, std::optional<PoolId> pool, bool traces) {
    Describer describer;
    nb::list segments, device_traces;
    for (int device = 0; device < self.ledger.devices(); ++device) {
        DeviceLedger &ledger = self.ledger.of(device);
        nb::list events;
        if (traces)
            for (const Occurrence &event : ledger.events())
                events.append(describer.event(event));
        for (const SegmentView &view : ledger.snapshot(pool ? &*pool : nullptr))
            segments.append(describer.segment(device, view));
        device_traces.append(events);
    }
    return nb::make_tuple(segments, device_traces);
}

} // namespace

void bind_ledger(nb::module_ &module) {
    DeviceLedger::note_stack = note_python_stack;
    Interpreter::connect([]() -> void * { return holds_python_lock() ? PyEval_SaveThread() : nullptr; },
                         [](void *left) { PyEval_RestoreThread(static_cast<PyThreadState *>(left)); });

    nb::class_<Settings>(module, "Settings")
        .def(nb::init<>())
        .def_rw("max_split_size", &Settings::max_split_size)
        .def_rw("max_non_split_rounding", &Settings::max_non_split_rounding)
        .def_rw("garbage_collection_threshold", &Settings::garbage_collection_threshold)
        .def_rw("expandable_segments", &Settings::expandable_segments)
        .def_rw("roundup_power2_divisions", &Settings::roundup_power2_divisions);

    nb::class_<Driver>(module, "Driver");
    nb::class_<PythonCudaDriver, Driver>(module, "CudaDriver").def(nb::init<>());
    nb::class_<PythonStreams, Driver>(module, "HostDriver")
        .def(nb::init<std::vector<HostMemory *>, nb::object>(), nb::arg("memories"), nb::arg("streams"),
             nb::keep_alive<1, 2>());
    nb::class_<FaultyDriver, Driver>(module, "FaultyDriver")
        .def(nb::init<Driver &>(), nb::arg("driver"), nb::keep_alive<1, 2>())
        .def("fail", &FaultyDriver::fail, nb::arg("entry"), nb::arg("calls"), nb::arg("status"))
        .def_prop_ro("failed", &FaultyDriver::failed)
        .def("meanwhile",
             [](FaultyDriver &driver, nb::object function) {
                 driver.meanwhile([function] {
                     const nb::gil_scoped_acquire lock;
                     try {
                         function();
                     } catch (nb::python_error &error) {
                         error.discard_as_unraisable(function);
                     }
                 });
             },
             nb::arg("function"))
        .def("successes", &FaultyDriver::successes, nb::arg("entry"));

    nb::class_<ExternalSource>(module, "Source");
    nb::class_<PythonSource, ExternalSource>(module, "PythonSource")
        .def("__init__",
             [](PythonSource *made, nb::object pool, bool reports_segments, std::size_t unit) {
                 new (made) PythonSource(std::move(pool), reports_segments ? Reserve::reported : Reserve::unknown, unit);
             },
             nb::arg("pool"), nb::arg("reports_segments"), nb::arg("unit"));
    nb::class_<OwnedLibrarySource, ExternalSource>(module, "LibrarySource")
        .def(nb::init<std::uintptr_t, std::uintptr_t, nb::object>(), nb::arg("allocate"), nb::arg("free"),
             nb::arg("owner"));

    nb::class_<Tracker>(module, "Tracker").def(nb::init<bool>(), nb::arg("of_thread"));

    nb::enum_<Stacks>(module, "Stacks", nb::is_arithmetic())
        .value("NONE", Stacks::none)
        .value("LIVE", Stacks::live)
        .value("ALLOCATIONS", Stacks::allocations)
        .value("ALL", Stacks::all);

    using Self = PythonLedger;
    nb::class_<Self>(module, "Ledger")
        .def(nb::init<Driver &, int, const Settings &, nb::object, nb::object>(), nb::arg("driver"), nb::arg("devices"),
             nb::arg("settings"), nb::arg("fail_memory"), nb::arg("fail_driver"), nb::keep_alive<1, 2>())
        .def("allocate",
             [](Self &self, int device, std::size_t size, Stream stream) {
                 return allocate(self, device, size, key_of(stream));
             },
             nb::arg("device"), nb::arg("size"), nb::arg("stream"))
        .def("allocate_block",
             [](Self &self, int device, std::size_t size, Stream stream) {
                 std::size_t block_size = 0;
                 const Address address = allocate(self, device, size, key_of(stream), &block_size);
                 return std::pair(address, block_size);
             },
             nb::arg("device"), nb::arg("size"), nb::arg("stream"))
        .def("free",
             [](Self &self, Address address) {
                 const bool found = self.ledger.free(address);
                 Interruption::deliver();
                 return found;
             },
             nb::arg("address"))
        .def("record_stream",
             [](Self &self, int device, Address address, Stream stream) {
                 return self.ledger.of(device).record_stream(address, key_of(stream));
             },
             nb::arg("device"), nb::arg("address"), nb::arg("stream"))
        .def("stream_created", [](Self &self, int device, Stream stream) { self.ledger.of(device).stream_created(stream); },
             nb::arg("device"), nb::arg("stream"))
        .def("stream_about_to_be_destroyed",
             [](Self &self, int device, Stream stream) {
                 unlocked(self, [&] { self.ledger.of(device).stream_about_to_be_destroyed(stream); });
             },
             nb::arg("device"), nb::arg("stream"))
        .def("size_of", [](Self &self, int device, Address address) { return self.ledger.of(device).size_of(address); },
             nb::arg("device"), nb::arg("address"))
        .def("empty_cache",
             [](Self &self, int device) { unlocked(self, [&] { self.ledger.of(device).empty_cache(); }); },
             nb::arg("device"))
        .def("cupy_functions",
             [](Self &self, nb::handle stream) {
                 return addresses(self, stream, nb::none(), reinterpret_cast<void *>(cupy_allocate),
                                  reinterpret_cast<void *>(cupy_free));
             },
             nb::arg("current_stream"))
        .def("cupy_segment_functions",
             [](Self &self, nb::handle stream, nb::object refuse) {
                 return addresses(self, stream, std::move(refuse), reinterpret_cast<void *>(cupy_allocate_segment),
                                  reinterpret_cast<void *>(cupy_free_segment));
             },
             nb::arg("current_stream"), nb::arg("refuse"))
        .def("allocate_segment",
             [](Self &self, int device, std::size_t size) { return self.ledger.of(device).allocate_segment(size); },
             nb::arg("device"), nb::arg("size"))
        .def("free_segment", [](Self &self, int device, Address address) { self.ledger.of(device).free_segment(address); },
             nb::arg("device"), nb::arg("address"))
        .def("share",
             [](Self &self) {
                 nb::find(self).inc_ref(); // tensors may outlive everything
                 share(new TorchFace(self));
             })
        .def("change_source",
             [](Self &self, std::shared_ptr<ExternalSource> source) { return self.ledger.change_source(std::move(source)); },
             nb::arg("source").none())
        .def("change_settings",
             [](Self &self, const Settings &settings) {
                 self.ledger.each([&](DeviceLedger &ledger) { ledger.change_settings(settings); });
             },
             nb::arg("settings"))
        .def_prop_rw("caching", [](Self &self) { return self.ledger.caching(); },
                     [](Self &self, bool enabled) { self.ledger.enable_caching(enabled); })
        // Pools
        .def("next_pool", [](Self &self) { return self.ledger.next_pool(); })
        .def("create_pool",
             [](Self &self, int device, PoolId id, std::shared_ptr<ExternalSource> library, bool split, bool use_on_oom) {
                 self.ledger.of(device).create_pool(id, std::move(library), split, use_on_oom);
             },
             nb::arg("device"), nb::arg("id"), nb::arg("library").none(), nb::arg("split"), nb::arg("use_on_oom"))
        .def("release_pool",
             [](Self &self, int device, PoolId id) { unlocked(self, [&] { self.ledger.of(device).release_pool(id); }); },
             nb::arg("device"), nb::arg("id"))
        .def("pool_uses", [](Self &self, int device, PoolId id) { return self.ledger.of(device).pool_uses(id); },
             nb::arg("device"), nb::arg("id"))
        .def("begin_pool",
             [](Self &self, int device, PoolId id, std::uint64_t use) { self.ledger.of(device).begin_pool(id, use); },
             nb::arg("device"), nb::arg("id"), nb::arg("use") = 0)
        .def("end_pool",
             [](Self &self, int device, PoolId id, std::uint64_t use) {
                 unlocked(self, [&] { self.ledger.of(device).end_pool(id, use); });
             },
             nb::arg("device"), nb::arg("id"), nb::arg("use") = 0)
        // Captures
        .def("begin_capture",
             [](Self &self, PoolId id, int device, Stream stream) {
                 return begin_capture(self, id, device, key_of(stream));
             },
             nb::arg("id"), nb::arg("device"), nb::arg("stream"))
        .def("end_capture",
             [](Self &self, CaptureId capture) { unlocked(self, [&] { self.ledger.end_capture(capture); }); },
             nb::arg("capture"))
        .def("has_capture", [](Self &self, CaptureId capture) { return self.ledger.has_capture(capture); },
             nb::arg("capture"))
        .def("hold",
             [](Self &self, const std::vector<Address> &addresses, CaptureId capture) {
                 return self.ledger.hold(addresses, capture);
             },
             nb::arg("addresses"), nb::arg("capture"))
        .def("release_graph",
             [](Self &self, PoolId id, const std::vector<Address> &held, bool replayed) {
                 unlocked(self, [&] { self.ledger.release_graph(id, held, replayed); });
             },
             nb::arg("id"), nb::arg("held"), nb::arg("replayed"))
        // Limits
        .def("set_memory_fraction",
             [](Self &self, int device, double fraction) { self.ledger.of(device).set_memory_fraction(fraction); },
             nb::arg("device"), nb::arg("fraction"))
        .def("memory_fraction", [](Self &self, int device) { return self.ledger.of(device).memory_fraction(); },
             nb::arg("device"))
        // Statistics
        .def("statistics", statistics, nb::arg("device"))
        .def("allocated", [](Self &self, int device) { return self.ledger.of(device).bytes().allocated_bytes.current; },
             nb::arg("device"))
        .def("peak_allocated", [](Self &self, int device) { return self.ledger.of(device).bytes().allocated_bytes.peak; },
             nb::arg("device"))
        .def("reserved", [](Self &self, int device) { return self.ledger.of(device).bytes().reserved_bytes.current; },
             nb::arg("device"))
        .def("peak_reserved", [](Self &self, int device) { return self.ledger.of(device).bytes().reserved_bytes.peak; },
             nb::arg("device"))
        .def("reset_peaks", [](Self &self, int device) { self.ledger.of(device).reset_peaks(); }, nb::arg("device"))
        .def("reset_accumulated", [](Self &self, int device) { self.ledger.of(device).reset_accumulated(); },
             nb::arg("device"))
        // A tracker that is attached has a reference of the ledger's: Python may forget it before it is detached.
        .def("attach",
             [](Self &self, int device, nb::object tracker) {
                 self.ledger.of(device).attach(nb::cast<Tracker *>(tracker));
                 tracker.release();
             },
             nb::arg("device"), nb::arg("tracker"))
        .def("detach",
             [](Self &self, int device, nb::object tracker) {
                 if (self.ledger.of(device).detach(nb::cast<Tracker *>(tracker)))
                     tracker.dec_ref();
             },
             nb::arg("device"), nb::arg("tracker"))
        .def("read",
             [](Self &self, int device, const Tracker &tracker) {
                 const Tracker read = self.ledger.of(device).read(tracker);
                 return nb::make_tuple(read.current, read.peak, read.allocated, read.freed, read.allocations);
             },
             nb::arg("device"), nb::arg("tracker"))
        // History
        .def("record_history",
             [](Self &self, Stacks stacks, std::size_t capacity, std::uint32_t skipped, bool clear) {
                 self.ledger.each([&](DeviceLedger &ledger) { ledger.record_history(stacks, capacity, skipped, clear); });
             },
             nb::arg("stacks"), nb::arg("capacity"), nb::arg("skipped"), nb::arg("clear"))
        .def("stop_history",
             [](Self &self) { self.ledger.each([](DeviceLedger &ledger) { ledger.stop_history(); }); })
        .def("set_metadata",
             [](Self &self, std::string text) {
                 if (text == self.metadata)
                     return;
                 const Metadata shared = text.empty() ? nullptr : std::make_shared<const std::string>(text);
                 self.ledger.each([&](DeviceLedger &ledger) { ledger.set_metadata(shared); });
                 self.metadata = std::move(text);
             },
             nb::lock_self(), nb::arg("text"))
        .def("metadata", [](Self &self) { return self.metadata; }, nb::lock_self())
        .def("snapshot", snapshot, nb::lock_self(), nb::arg("pool").none(), nb::arg("traces"))
        // The end
        .def("abandon", [](Self &self) { self.ledger.each([](DeviceLedger &ledger) { ledger.abandon(); }); })
        .def("close", [](Self &self) { self.ledger.each([](DeviceLedger &ledger) { ledger.close(); }); });
}

} // namespace tcuda
