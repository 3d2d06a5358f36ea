#include "bindings/transfers/python_transfers.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/python/owned.hpp"
#include "bindings/python/python_calls.hpp"
#include "bindings/races/work_notes.hpp"
#include "bindings/transfers/transfer_call.hpp"
#include "driver/relaxed_captures.hpp"
#include "transfers/pack_tables.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

enum KernelKind { small_pack, large_pack, addition };

constexpr std::size_t most_kernels = 1024, most_dtypes = 32; // that are kept; the search for a dtype is linear
constexpr unsigned blocks_of_multiprocessor = 2;                     // the fastest number on an H200, over NVLink

bool equal(const Attribute &attribute, PyObject *one, PyObject *other) {
    const Owned first(attribute.of(one)), second(first ? attribute.of(other) : nullptr);
    const int same = second ? PyObject_RichCompareBool(first.get(), second.get(), Py_EQ) : -1;
    require(same >= 0);
    return same == 1;
}

} // namespace

PythonTransfers::PythonTransfers(const ArrayType &arrays, nb::type_object type, nb::type_object pointer,
                                 nb::handle current_stream, nb::list captures, TransferFunctions functions)
    : arrays_(arrays), reader_(type, pointer), type_(type), current_stream_(current_stream_in(current_stream)),
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

bool PythonTransfers::is_array(PyObject *object) const {
    if (reader_.has(object))
        return true;
    const int found = PyObject_IsInstance(object, type_.ptr());
    require(found >= 0);
    return found == 1;
}

bool PythonTransfers::have_same_dtype(PyObject *one, PyObject *other) const {
    return equal(arrays_.dtype, one, other);
}

bool PythonTransfers::are_alike(PyObject *one, PyObject *other) const {
    return have_same_dtype(one, other) && equal(arrays_.shape, one, other);
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
    PyObject *const made = place ? arrays_.maker.make(shape, type.ptr(), place.get()) : nullptr;
    require(made != nullptr);
    return nb::steal(made);
}

nb::object PythonTransfers::empty(nb::handle shape, nb::handle dtype, int device) {
    Call call(*this);
    return call.make(shape.ptr(), dtype.ptr(), device);
}

nb::object PythonTransfers::send(nb::handle source, nb::handle devices) {
    const Items indices(devices);
    const Owned shape(arrays_.shape.of(source.ptr())), dtype(shape ? arrays_.dtype.of(source.ptr()) : nullptr);
    require(static_cast<bool>(dtype));
    const nb::object type = nb::borrow(made_as(dtype.get()));
    ArrayMemory from;
    require(reader_.read(source.ptr(), &from));
    nb::object made = new_list(indices.size());
    for (Py_ssize_t i = 0; i < indices.size(); ++i)
        reaches(from.device, static_cast<int>(indices.integer_at(i)));
    Call call(*this);
    const End start{call.place(from.device), from.address};
    std::vector<End> ends;
    ends.reserve(static_cast<std::size_t>(indices.size()));
    for (Py_ssize_t i = 0; i < indices.size(); ++i) {
        const int device = static_cast<int>(indices.integer_at(i));
        nb::object array = call.make(shape.get(), type.ptr(), device);
        ArrayMemory to;
        require(reader_.read_place(array.ptr(), &to));
        ends.push_back({call.place(device), to.address});
        require(PyList_SetItem(made.ptr(), i, array.release().ptr()) == 0);
    }
    if (from.bytes != 0)
        call.run([&](Transfer &work) { return work.send(ends, start, from.bytes); });
    return made;
}

nb::object PythonTransfers::cut(nb::handle source, nb::handle lengths, nb::handle devices) {
    const Items sizes(lengths), indices(devices);
    require_same_size(sizes, indices);
    const Owned shape(arrays_.shape.of(source.ptr())), dtype(shape ? arrays_.dtype.of(source.ptr()) : nullptr);
    require(static_cast<bool>(dtype));
    const nb::object type = nb::borrow(made_as(dtype.get()));
    const Items axes(nb::handle(shape.get()));
    ArrayMemory from;
    require(reader_.read(source.ptr(), &from));
    if (!from.is_c_contiguous || axes.size() == 0)
        return nb::none();
    const long long rows = axes.integer_at(0);
    const std::uint64_t row_bytes = rows == 0 ? 0 : from.bytes / static_cast<std::uint64_t>(rows);
    long long begin = 0;
    for (Py_ssize_t i = 0; i < sizes.size(); ++i) {
        reaches(from.device, static_cast<int>(indices.integer_at(i)));
        const long long length = sizes.integer_at(i);
        if (length < 0 || length > rows - begin)
            throw nb::value_error("the parts are not within the array");
        begin += length;
    }
    nb::object made = new_list(sizes.size());
    Call call(*this);
    const Place here = call.place(from.device);
    std::vector<Copy> parts;
    begin = 0;
    for (Py_ssize_t i = 0; i < sizes.size(); ++i) {
        const int device = static_cast<int>(indices.integer_at(i));
        const long long length = sizes.integer_at(i);
        nb::object part;
        if (device == from.device) {
            part = part_of(source, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(begin + length));
        } else {
            part = call.make(shape_of_part(axes, sizes[i]).ptr(), type.ptr(), device);
            ArrayMemory to;
            require(reader_.read_place(part.ptr(), &to));
            if (length != 0 && row_bytes != 0)
                parts.push_back({{call.place(device), to.address},
                                 from.address + static_cast<std::uint64_t>(begin) * row_bytes,
                                 static_cast<std::uint64_t>(length) * row_bytes});
        }
        require(PyList_SetItem(made.ptr(), i, part.release().ptr()) == 0);
        begin += length;
    }
    if (!parts.empty())
        call.run([&](Transfer &work) { return work.send(parts, here); });
    return made;
}

void PythonTransfers::copy(nb::handle target, nb::handle source) {
    ArrayMemory from, to;
    require(reader_.read(source.ptr(), &from) && reader_.read_place(target.ptr(), &to));
    if (from.bytes == 0)
        return;
    reaches(from.device, to.device);
    Call call(*this);
    const End start{call.place(from.device), from.address}, end{call.place(to.device), to.address};
    call.run([&](Transfer &work) { return work.send({{end, start.address, from.bytes}}, start.place); });
}

void PythonTransfers::upload(nb::handle target, std::uintptr_t address, std::uintptr_t mark) {
    ArrayMemory to;
    require(reader_.read(target.ptr(), &to));
    Call call(*this);
    const End end{call.place(to.device), to.address};
    call.run([&](Transfer &work) {
        return work.upload(end, reinterpret_cast<const void *>(address), to.bytes, static_cast<libcuda::Event>(mark));
    });
}

nb::object PythonTransfers::spread(std::uintptr_t address, nb::handle shape, nb::handle dtype, nb::handle lengths,
                                   nb::handle devices, nb::handle marks) {
    struct Upload {
        End target;
        std::uintptr_t source;
        std::uint64_t bytes;
        libcuda::Event mark;
    };
    const Items axes(shape), sizes(lengths), indices(devices), events(marks);
    require_same_size(sizes, indices);
    require_same_size(sizes, events);
    const nb::object type = nb::borrow(made_as(dtype.ptr()));
    nb::object made = new_list(sizes.size());
    std::vector<Upload> uploads;
    uploads.reserve(static_cast<std::size_t>(sizes.size()));
    Call call(*this);
    for (Py_ssize_t i = 0; i < sizes.size(); ++i) {
        const int device = static_cast<int>(indices.integer_at(i));
        nb::object part = call.make(shape_of_part(axes, sizes[i]).ptr(), type.ptr(), device);
        ArrayMemory to;
        require(reader_.read(part.ptr(), &to));
        if (to.bytes != 0)
            uploads.push_back({{call.place(device), to.address}, address, to.bytes,
                               static_cast<libcuda::Event>(events.integer_at(i))});
        address += to.bytes;
        require(PyList_SetItem(made.ptr(), i, part.release().ptr()) == 0);
    }
    call.run([&](Transfer &work) {
        return std::all_of(uploads.begin(), uploads.end(), [&](const Upload &each) {
            return work.upload(each.target, reinterpret_cast<const void *>(each.source), each.bytes, each.mark);
        });
    });
    return made;
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

void PythonTransfers::relay(nb::handle arrays, nb::handle hops) {
    struct Step {
        std::size_t source, target;
        std::uint64_t begin, end;
        bool is_first;
    };
    const Items given(arrays), wanted(hops);
    std::vector<ArrayMemory> memories(static_cast<std::size_t>(given.size()));
    for (Py_ssize_t i = 0; i < given.size(); ++i)
        require(reader_.read_place(given[i], &memories[static_cast<std::size_t>(i)]));
    std::vector<Step> steps;
    steps.reserve(static_cast<std::size_t>(wanted.size()));
    for (Py_ssize_t i = 0; i < wanted.size(); ++i) {
        const Items hop(nb::handle(wanted[i]));
        if (hop.size() != 5)
            throw nb::value_error("a hop has five fields");
        const Step step{static_cast<std::size_t>(hop.integer_at(0)), static_cast<std::size_t>(hop.integer_at(1)),
                        static_cast<std::uint64_t>(hop.integer_at(2)), static_cast<std::uint64_t>(hop.integer_at(3)),
                        hop[4] == Py_True};
        if (step.source >= memories.size() || step.target >= memories.size())
            throw nb::value_error("a hop is between two of the arrays");
        reaches(memories[step.source].device, memories[step.target].device);
        if (step.begin < step.end)
            steps.push_back(step);
    }
    Call call(*this);
    std::vector<Place> places;
    for (const ArrayMemory &memory : memories)
        places.push_back(call.place(memory.device));
    const auto sends = [&](const Place &place) {
        return std::any_of(steps.begin(), steps.end(), [&](const Step &step) { return places[step.source] == place; });
    };
    call.run([&](Transfer &work) {
        for (const Step &step : steps) {
            const End source{places[step.source], memories[step.source].address + step.begin};
            const End target{places[step.target], memories[step.target].address + step.begin};
            Place lane, next = target.place;
            if (!work.open(source.place, &lane) || (step.is_first && !work.wait(lane, target.place)) ||
                !work.copy(lane, target, source, step.end - step.begin) ||
                (sends(target.place) && !work.open(target.place, &next)) || !work.wait(next, lane))
                return false;
        }
        return work.close();
    });
}

nb::object PythonTransfers::sizes(nb::handle arrays, int device) {
    const Items given(arrays);
    nb::object found = new_list(given.size());
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        ArrayMemory memory;
        if (!is_array(given[i]))
            return nb::none();
        require(reader_.read(given[i], &memory));
        if (memory.device != device || !memory.is_c_contiguous)
            return nb::none();
        PyObject *const bytes = PyLong_FromSize_t((memory.bytes + packed_unit - 1) / packed_unit * packed_unit);
        require(bytes != nullptr && PyList_SetItem(found.ptr(), i, bytes) == 0);
    }
    return found;
}

void PythonTransfers::pack(nb::handle arrays, nb::handle flat, nb::handle offsets) {
    const Items given(arrays), places(offsets);
    require_same_size(given, places);
    ArrayMemory to;
    require(reader_.read_place(flat.ptr(), &to));
    std::vector<PackedArray> packed;
    packed.reserve(static_cast<std::size_t>(given.size()));
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        ArrayMemory from;
        require(reader_.read(given[i], &from));
        packed.push_back({from.address, from.bytes, static_cast<std::uint64_t>(places.integer_at(i))});
    }
    const PackKernel kernel = pack_kernel(to.device, packed.size());
    Call call(*this);
    const Place place = call.place(to.device);
    call.run([&](Transfer &work) { return pack_with_notes(work, place, kernel, to.address, packed); });
}

PackKernel PythonTransfers::pack_kernel(int device, std::size_t arrays) {
    const libcuda::Function large = arrays > small_capacity ? function(device, large_pack, nb::none(), 0) : 0;
    return large != 0 ? PackKernel{large, true} : PackKernel{function(device, small_pack, nb::none(), 0), false};
}

libcuda::Function PythonTransfers::sum_of(int device, const std::vector<ArrayMemory> &terms, nb::handle dtype) {
    for (const ArrayMemory &term : terms)
        if (!reaches(device, term.device))
            return 0;
    return function(device, addition, dtype, static_cast<int>(terms.size()));
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
    const libcuda::Function kernel = sum_of(to.device, terms, dtype.get());
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

bool PythonTransfers::add_in_chain(nb::handle sums, nb::handle arrays, nb::handle cuts) {
    struct Link {
        End out;
        std::uint64_t own, next; // the addresses of the array of the device, and of the sum of the next device
        libcuda::Function kernel;
    };
    const Items totals(sums), given(arrays), pieces(cuts);
    require_same_size(totals, given);
    std::vector<ArrayMemory> outs(static_cast<std::size_t>(totals.size())), owns(outs.size());
    for (Py_ssize_t i = 0; i < totals.size(); ++i)
        require(reader_.read(totals[i], &outs[static_cast<std::size_t>(i)]) &&
                reader_.read_place(given[i], &owns[static_cast<std::size_t>(i)]));
    if (outs.size() < 2)
        return true;
    const Owned dtype(arrays_.dtype.of(given[0]));
    const auto elements = static_cast<std::uint64_t>(taken_integer(arrays_.size.of(totals[0])));
    require(dtype && !PyErr_Occurred());
    if (elements == 0)
        return true;
    const std::uint64_t itemsize = outs[0].bytes / elements;
    std::vector<Link> links;
    for (std::size_t place = 0; place + 1 < outs.size(); ++place) {
        const int device = outs[place].device;
        const libcuda::Function kernel = function(device, addition, dtype.get(), 2);
        if (kernel == 0 || !reaches(device, outs[place + 1].device))
            return false;
        links.push_back({{{device, 0}, outs[place].address}, owns[place].address, outs[place + 1].address, kernel});
    }
    struct Range {
        std::uint64_t begin, end;
    };
    std::vector<Range> steps;
    for (Py_ssize_t i = 0; i < pieces.size(); ++i) {
        const Items piece(nb::handle(pieces[i]));
        if (piece.size() != 2)
            throw nb::value_error("a piece has a begin and an end");
        steps.push_back({static_cast<std::uint64_t>(piece.integer_at(0)),
                         static_cast<std::uint64_t>(piece.integer_at(1))});
    }
    Call call(*this);
    const Place last = call.place(outs.back().device);
    for (Link &link : links)
        link.out.place = call.place(link.out.place.device);
    call.run([&](Transfer &work) {
        std::vector<Place> lanes(links.size(), last);
        for (std::size_t place = 0; place < links.size(); ++place)
            if (!work.open(links[place].out.place, &lanes[place]))
                return false;
        lanes.push_back(last);
        for (const Range &piece : steps)
            for (std::size_t place = links.size(); place-- > 0;) {
                const Link &link = links[place];
                const Place &here = lanes[place], &next = lanes[place + 1];
                const std::uint64_t offset = piece.begin * itemsize;
                std::uint64_t out = link.out.address + offset, size = piece.end - piece.begin;
                std::uint64_t terms[] = {link.own + offset, link.next + offset};
                WorkNotes notes;
                note_addition(notes, out, terms, 2, size * itemsize);
                void *arguments[] = {&out, terms, &size};
                if (size != 0 && !(work.wait(here, next) &&
                                   work.launch(here, link.kernel, addition_blocks(here.device, size * itemsize),
                                               add_threads, arguments)))
                    return false;
                if (piece.end == elements && !work.wait(next, here))
                    return false;
            }
        return work.close();
    });
    return true;
}

bool PythonTransfers::join(nb::handle out, nb::handle arrays) {
    const Items given(arrays);
    ArrayMemory to;
    require(reader_.read(out.ptr(), &to));
    if (!to.is_c_contiguous)
        return false;
    std::vector<ArrayMemory> parts(static_cast<std::size_t>(given.size()));
    std::uint64_t bytes = 0;
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        ArrayMemory &part = parts[static_cast<std::size_t>(i)];
        if (!is_array(given[i]))
            return false;
        require(reader_.read(given[i], &part));
        const bool overlaps = part.address < to.address + to.bytes && to.address < part.address + part.bytes;
        if (!part.is_c_contiguous || overlaps || !have_same_dtype(out.ptr(), given[i]))
            return false;
        reaches(part.device, to.device);
        bytes += part.bytes;
    }
    if (bytes != to.bytes)
        return false;
    Call call(*this);
    std::vector<Place> others;
    std::vector<Piece> pieces;
    std::uint64_t address = to.address;
    for (const ArrayMemory &part : parts) {
        const Place place = call.place(part.device);
        pieces.push_back({{place, part.address}, address, part.bytes});
        address += part.bytes;
        if (part.device != to.device && part.bytes != 0 &&
            std::none_of(others.begin(), others.end(), [&](const Place &known) { return known.device == part.device; }))
            others.push_back(place);
    }
    const Place end = call.place(to.device);
    call.run([&](Transfer &work) { return work.join(pieces, end, others); });
    return true;
}

nb::object PythonTransfers::alike(nb::handle rows) {
    const Items given(rows);
    nb::object devices = new_list(given.size());
    std::vector<std::unique_ptr<const Items>> read;
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        read.push_back(std::make_unique<const Items>(nb::handle(given[i])));
        const Items &row = *read.back(), &first = *read.front();
        int device = -1;
        if (row.size() == 0 || row.size() != first.size())
            return nb::none();
        for (Py_ssize_t place = 0; place < row.size(); ++place) {
            ArrayMemory memory;
            if (!is_array(row[place]))
                return nb::none();
            require(reader_.read(row[place], &memory));
            if (!memory.is_c_contiguous || (place != 0 && memory.device != device) ||
                (i != 0 && !are_alike(first[place], row[place])))
                return nb::none();
            device = memory.device;
        }
        PyObject *const number = PyLong_FromLong(device);
        require(number != nullptr && PyList_SetItem(devices.ptr(), i, number) == 0);
    }
    return devices;
}

} // namespace tcuda
