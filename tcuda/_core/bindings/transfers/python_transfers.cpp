#include "bindings/transfers/python_transfers.hpp"

#include <algorithm>
#include <utility>

#include "bindings/notes/work_notes.hpp"
#include "bindings/python/containers.hpp"
#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "driver/relaxed_captures.hpp"
#include "transfers/pack_tables.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

enum KernelKind { small_pack, large_pack, addition };

constexpr std::size_t most_kernels = 1024, most_dtypes = 32;        // that are kept; the search for a dtype is linear
constexpr std::size_t most_inputs = 16;                             // of a sum
constexpr unsigned add_threads = 512, blocks_of_multiprocessor = 2; // the fastest numbers on an H200, over NVLink

void require(bool is_done) {
    if (!is_done)
        nb::raise_python_error();
}

long long integer(PyObject *number) {
    const long long value = PyLong_AsLongLong(number);
    require(value != -1 || !PyErr_Occurred());
    return value;
}

// The items of a sequence.
class Items {
public:
    explicit Items(nb::handle sequence) : tuple_(PySequence_Tuple(sequence.ptr())) {
        require(static_cast<bool>(tuple_));
        size_ = PyTuple_Size(tuple_.get());
    }

    Py_ssize_t size() const { return size_; }
    // Borrowed reference
    PyObject *operator[](Py_ssize_t place) const { return PyTuple_GetItem(tuple_.get(), place); }
    long long integer_at(Py_ssize_t place) const { return integer((*this)[place]); }

private:
    const Owned tuple_;
    Py_ssize_t size_;
};

void require_same_size(const Items &first, const Items &second) {
    if (first.size() != second.size())
        throw nb::value_error("the sequences must have the same length");
}

} // namespace

// A call of the owner, with its work and the current stream of each device.
class PythonTransfers::Call : public WaitGuard {
public:
    explicit Call(PythonTransfers &owner)
        : owner_(owner), is_capturing_(PyList_Size(owner.captures_.ptr()) > 0),
          // A race detector names the streams of the program, and would name a side stream too.
          work_(owner.devices_, is_capturing_ ? this : nullptr, !are_calls_noted()) {}

    // The current stream of `device`, whose context becomes current.
    Place place(int device) {
        if (!work_.enter(device))
            raise();
        for (const Place &known : places_)
            if (known.device == device)
                return known;
        const auto stream = owner_.current_stream_();
        require(stream != -1 || !PyErr_Occurred());
        places_.push_back({device, static_cast<libcuda::Stream>(stream)});
        return places_.back();
    }

    // A new array on `device`.
    nb::object make(PyObject *shape, PyObject *dtype, int device) {
        if (!work_.enter(device))
            raise();
        return checked(owner_.arrays_.maker.make(shape, dtype));
    }

    // Calls `function(work)` without Python's lock, and raises an error if the result is false. Then no copy is under
    // way.
    template <typename Function> void run(Function function) {
        if (is_capturing_) {
            if (!function(work_))
                raise();
            return;
        }
        bool is_done;
        {
            const nb::gil_scoped_release release; // the calls may wait for room in the queues of the streams
            is_done = function(work_);
            if (!is_done)
                work_.settle(places_);
        }
        if (!is_done)
            raise();
    }

    bool allows(const Place &waiting, const Place &awaited) override {
        const Owned numbers[] = {Owned(PyLong_FromLong(waiting.device)), Owned(PyLong_FromSize_t(waiting.stream)),
                                 Owned(PyLong_FromLong(awaited.device)), Owned(PyLong_FromSize_t(awaited.stream))};
        PyObject *arguments[4];
        for (int place = 0; place < 4; ++place)
            if ((arguments[place] = numbers[place].get()) == nullptr)
                return false;
        return done(PyObject_Vectorcall(owner_.functions_.check.ptr(), arguments, 4, nullptr));
    }

private:
    [[noreturn]] void raise() {
        if (!PyErr_Occurred()) {
            owner_.functions_.fail(work_.status(), work_.failed_call());
            PyErr_SetString(PyExc_SystemError, "a failure of the driver raised nothing");
        }
        nb::raise_python_error();
    }

    PythonTransfers &owner_;
    const bool is_capturing_;
    Transfer work_;
    std::vector<Place> places_;
};

PythonTransfers::PythonTransfers(const ArrayType &arrays, nb::type_object type, nb::type_object pointer,
                                 nb::handle current_stream, nb::list captures, TransferFunctions functions)
    : arrays_(arrays), reader_(type, pointer), current_stream_(current_stream_in(current_stream)),
      captures_(std::move(captures)), functions_(std::move(functions)) {}

bool PythonTransfers::reaches(int device, int peer) {
    if (device == peer)
        return true;
    const int count = devices_.count();
    if (device < 0 || peer < 0 || device >= count || peer >= count)
        throw nb::value_error("a device of an array does not exist");
    std::atomic<signed char> &known = devices_.access(device, peer);
    if (known < 0) {
        const RelaxedCaptures relaxed(libcuda::calls<libcuda::CaptureCalls>()); // to enable access maps memory
        known = nb::cast<bool>(functions_.reach(device, peer)) ? 1 : 0;
    }
    return known == 1;
}

libcuda::Function PythonTransfers::function(int device, int kind, nb::handle dtype, int count) {
    const Kernel kernel{device, kind, dtype.ptr(), count};
    const auto found = kernels_.find(kernel);
    if (found != kernels_.end())
        return found->second.first;
    const RelaxedCaptures relaxed(libcuda::calls<libcuda::CaptureCalls>()); // to load a module takes memory
    const auto loaded = nb::cast<libcuda::Function>(functions_.load(device, kind, dtype, count));
    if (kernels_.size() >= most_kernels)
        kernels_.clear(); // a program may make a new object for the same dtype again and again
    kernels_[kernel] = {loaded, nb::borrow(dtype)};
    return loaded;
}

unsigned PythonTransfers::addition_blocks(int device, std::uint64_t bytes) {
    const auto most = static_cast<std::uint64_t>(devices_.multiprocessors(device)) * blocks_of_multiprocessor;
    return static_cast<unsigned>(std::min(most, (bytes / 16 + add_threads) / add_threads));
}

PyObject *PythonTransfers::made_as(PyObject *dtype) {
    for (const auto &[known, type] : scalar_types_)
        if (known.ptr() == dtype)
            return type.ptr();
    nb::object type = functions_.scalar_type(nb::handle(dtype));
    if (scalar_types_.size() >= most_dtypes)
        scalar_types_.clear();
    scalar_types_.emplace_back(nb::borrow(dtype), std::move(type));
    return scalar_types_.back().second.ptr();
}

nb::object PythonTransfers::array_at(PyObject *pointer, std::uint64_t offset, PyObject *shape, PyObject *dtype) {
    const nb::object type = nb::borrow(made_as(dtype));
    const Owned bytes(PyLong_FromUnsignedLongLong(offset));
    const Owned place(bytes ? PyNumber_Add(pointer, bytes.get()) : nullptr);
    return checked(place ? arrays_.maker.make(shape, type.ptr(), place.get()) : nullptr);
}

nb::object PythonTransfers::empty(nb::handle shape, nb::handle dtype, int device) {
    Call call(*this);
    return call.make(shape.ptr(), dtype.ptr(), device);
}

void PythonTransfers::relay(nb::handle arrays, nb::handle hops) {
    const Items given(arrays), wanted(hops);
    std::vector<ArrayMemory> memories(static_cast<std::size_t>(given.size()));
    for (Py_ssize_t i = 0; i < given.size(); ++i)
        require(reader_.read_place(given[i], &memories[static_cast<std::size_t>(i)]));
    const auto end_of = [&](long long array, std::uint64_t offset) {
        if (array < 0 || array >= given.size())
            throw nb::value_error("a hop is between two of the arrays");
        const ArrayMemory &memory = memories[static_cast<std::size_t>(array)];
        return End{{memory.device, 0}, memory.address + offset};
    };
    std::vector<Copy> copies;
    copies.reserve(static_cast<std::size_t>(wanted.size()));
    for (Py_ssize_t i = 0; i < wanted.size(); ++i) {
        const Items hop{nb::handle(wanted[i])};
        if (hop.size() != 5)
            throw nb::value_error("a hop has five fields");
        const auto begin = static_cast<std::uint64_t>(hop.integer_at(2)),
                   end = static_cast<std::uint64_t>(hop.integer_at(3));
        const End source = end_of(hop.integer_at(0), begin),
                  target = end_of(hop.integer_at(1), static_cast<std::uint64_t>(hop.integer_at(4)));
        reaches(source.place.device, target.place.device);
        if (begin < end)
            copies.push_back({source, target, end - begin});
    }
    if (copies.empty())
        return;
    Call call(*this);
    for (Copy &copy : copies) {
        copy.source.place = call.place(copy.source.place.device);
        copy.target.place = call.place(copy.target.place.device);
    }
    call.run([&](Transfer &work) { return work.relay(copies); });
}

void PythonTransfers::copy_rows(nb::handle target, std::size_t target_pitch, nb::handle source,
                                std::size_t source_pitch, std::size_t width, std::size_t rows) {
    ArrayMemory from, to;
    require(reader_.read_place(source.ptr(), &from) && reader_.read_place(target.ptr(), &to));
    if (width == 0 || rows == 0)
        return;
    reaches(from.device, to.device);
    Call call(*this);
    const End start{call.place(from.device), from.address}, end{call.place(to.device), to.address};
    call.run([&](Transfer &work) {
        Place lane;
        return work.open(start.place, &lane) && work.wait(lane, end.place) &&
               work.copy_rows(lane, end, target_pitch, start, source_pitch, width, rows) &&
               work.finish(lane, {end.place});
    });
}

void PythonTransfers::upload(nb::handle targets, nb::handle addresses) {
    struct Upload {
        End target;
        std::uintptr_t source;
        std::uint64_t bytes;
    };
    const Items given(targets), sources(addresses);
    require_same_size(given, sources);
    std::vector<Upload> uploads;
    uploads.reserve(static_cast<std::size_t>(given.size()));
    Call call(*this);
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        ArrayMemory to;
        require(reader_.read(given[i], &to));
        uploads.push_back(
            {{call.place(to.device), to.address}, static_cast<std::uintptr_t>(sources.integer_at(i)), to.bytes});
    }
    call.run([&](Transfer &work) {
        return std::all_of(uploads.begin(), uploads.end(), [&](const Upload &each) {
            return work.upload(each.target, reinterpret_cast<const void *>(each.source), each.bytes);
        });
    });
}

nb::object PythonTransfers::pack(nb::handle arrays, int device, std::uint64_t full) {
    const Items given(arrays);
    std::vector<PackedArray> packed;
    packed.reserve(static_cast<std::size_t>(given.size()));
    nb::object offsets = new_list();
    std::uint64_t bytes = 0;
    for (Py_ssize_t i = 0; i < given.size() && (i == 0 || bytes < full); ++i) {
        ArrayMemory from;
        if (!reader_.is_array(given[i]))
            return nb::none();
        require(reader_.read(given[i], &from));
        if (from.device != device || !from.is_c_contiguous)
            return nb::none();
        packed.push_back({from.address, from.bytes, bytes});
        const Owned offset(PyLong_FromUnsignedLongLong(bytes));
        require(offset && PyList_Append(offsets.ptr(), offset.get()) == 0);
        bytes += (from.bytes + packed_unit - 1) / packed_unit * packed_unit;
    }
    if (packed.size() < 2)
        return nb::none();
    const PackKernel kernel = pack_kernel(device, packed.size());
    Call call(*this);
    nb::object flat = call.make(nb::make_tuple(bytes).ptr(), nb::str("B").ptr(), device);
    ArrayMemory to;
    require(reader_.read_place(flat.ptr(), &to));
    const Place place = call.place(device);
    call.run([&](Transfer &work) { return pack_with_notes(work, place, kernel, to.address, packed); });
    return nb::make_tuple(std::move(flat), std::move(offsets));
}

PackKernel PythonTransfers::pack_kernel(int device, std::size_t arrays) {
    const libcuda::Function large = arrays > small_capacity ? function(device, large_pack, nb::none(), 0) : 0;
    return large != 0 ? PackKernel{large, true} : PackKernel{function(device, small_pack, nb::none(), 0), false};
}

nb::object PythonTransfers::views(nb::handle flat, nb::handle like, nb::handle offsets) {
    const Items given(like), places(offsets);
    require_same_size(given, places);
    const Owned pointer(reader_.pointer_of(flat.ptr()));
    require(static_cast<bool>(pointer));
    nb::object made = new_list(given.size());
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        const Owned shape(arrays_.shape.of(given[i])), dtype(shape ? arrays_.dtype.of(given[i]) : nullptr);
        require(static_cast<bool>(dtype));
        const auto offset = static_cast<std::uint64_t>(places.integer_at(i));
        nb::object view = array_at(pointer.get(), offset, shape.get(), dtype.get());
        require(PyList_SetItem(made.ptr(), i, view.release().ptr()) == 0);
    }
    return made;
}

bool PythonTransfers::add(nb::handle out, nb::handle inputs, bool release) {
    const Items given(inputs);
    if (given.size() < 1 || given.size() > static_cast<Py_ssize_t>(most_inputs))
        return false;
    ArrayMemory to;
    require(reader_.read(out.ptr(), &to));
    std::uint64_t size = static_cast<std::uint64_t>(taken_integer(arrays_.size.of(out.ptr())));
    const Owned dtype(arrays_.dtype.of(out.ptr()));
    require(dtype && !PyErr_Occurred());
    std::uint64_t addresses[most_inputs];
    std::vector<int> peers;
    std::vector<ArrayMemory> terms(static_cast<std::size_t>(given.size()));
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        ArrayMemory &from = terms[static_cast<std::size_t>(i)];
        require(reader_.read_place(given[i], &from));
        addresses[i] = from.address;
        if (from.device != to.device && std::find(peers.begin(), peers.end(), from.device) == peers.end())
            peers.push_back(from.device);
    }
    for (const ArrayMemory &term : terms)
        if (!reaches(to.device, term.device))
            return false;
    const libcuda::Function kernel = function(to.device, addition, dtype.get(), static_cast<int>(terms.size()));
    if (kernel == 0)
        return false;
    if (size == 0)
        return true;
    const unsigned blocks = addition_blocks(to.device, to.bytes);
    Call call(*this);
    std::vector<Place> places;
    for (const int peer : peers)
        places.push_back(call.place(peer));
    const Place here = call.place(to.device);
    call.run([&](Transfer &work) {
        WorkNotes notes;
        note_addition(notes, to.address, addresses, terms.size(), to.bytes);
        void *arguments[] = {&to.address, addresses, &size};
        return work.add(here, places, kernel, blocks, add_threads, arguments, release);
    });
    return true;
}

} // namespace tcuda
