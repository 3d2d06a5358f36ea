#include "bindings/transfers/plain_calls.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/races/work_notes.hpp"
#include "bindings/transfers/transfer_call.hpp"
#include "transfers/pack_tables.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

bool is_list(nb::handle object) { return PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr()); }

std::uint64_t padded(std::uint64_t bytes) { return (bytes + packed_unit - 1) / packed_unit * packed_unit; }

nb::object checked(PyObject *made) {
    require(made != nullptr);
    return nb::steal(made);
}

void put(nb::handle list, std::size_t place, nb::object item) {
    require(PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(place), item.release().ptr()) == 0);
}

// The bytes in `number`; nothing unless it is an integer from 0 on.
std::optional<std::uint64_t> bytes_in(nb::handle number) {
    const long long bytes = PyLong_CheckExact(number.ptr()) ? PyLong_AsLongLong(number.ptr()) : -1;
    if (bytes < 0)
        PyErr_Clear(); // the integer is too large
    return bytes < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(bytes));
}

nb::object tuple_of(nb::handle list) { return checked(PyList_AsTuple(list.ptr())); }

nb::object new_tuple(Py_ssize_t size) { return checked(PyTuple_New(size)); }

void put_number(const nb::object &tuple, Py_ssize_t place, std::uint64_t number) {
    require(PyTuple_SetItem(tuple.ptr(), place, checked(PyLong_FromUnsignedLongLong(number)).release().ptr()) == 0);
}

std::uint64_t itemsize_of(const nb::object &dtype) { return nb::cast<std::uint64_t>(dtype.attr("itemsize")); }

// Whether all axes but the first have the same lengths.
bool have_same_rows(const Items &one, const Items &other) {
    bool is_same = one.size() == other.size();
    for (Py_ssize_t axis = 1; is_same && axis < one.size(); ++axis)
        is_same = one.integer_at(axis) == other.integer_at(axis);
    return is_same;
}

} // namespace

// A call that takes memory from CuPy.
class PlainCalls::Call : public PythonTransfers::Call {
public:
    explicit Call(PlainCalls &owner) : PythonTransfers::Call(owner.transfers_), owner_(owner) {}

    // New memory of `device`, which the memory's stream may use.
    nb::object allocate(std::uint64_t bytes, int device) {
        place(device);
        const Owned number(PyLong_FromUnsignedLongLong(bytes));
        PyObject *const arguments[] = {number.get()};
        require(static_cast<bool>(number));
        return checked(PyObject_Vectorcall(owner_.allocate_.ptr(), arguments, 1, nullptr));
    }
    End end_of(nb::handle pointer, int device) {
        ArrayMemory memory;
        require(owner_.transfers_.reader_.read_pointer(pointer.ptr(), &memory));
        return {known_place(device), memory.address};
    }

    // Records the work of the streams of all devices but `device`, and returns the streams.
    std::vector<Place> record_others(const Arrays &arrays, int device) {
        std::vector<Place> others;
        for (const Array &array : arrays) {
            if (array.memory.device == device)
                continue;
            const Place other = place(array.memory.device);
            if (std::find(others.begin(), others.end(), other) != others.end())
                continue;
            others.push_back(other);
            run([&](Transfer &work) { return work.record(other); });
        }
        return others;
    }

private:
    PlainCalls &owner_;
};

bool PlainCalls::is_usable() const { return PyList_Size(transfers_.captures_.ptr()) == 0; }

std::optional<int> PlainCalls::device_in(PyObject *number) const {
    if (!PyLong_CheckExact(number))
        return std::nullopt;
    const long device = PyLong_AsLong(number);
    if (device == -1 && PyErr_Occurred())
        PyErr_Clear();
    if (device < 0 || device >= transfers_.devices_.count())
        return std::nullopt;
    return static_cast<int>(device);
}

std::optional<std::vector<int>> PlainCalls::devices_in(nb::handle devices) const {
    if (!is_list(devices))
        return std::nullopt;
    const Items given(devices);
    std::vector<int> found;
    found.reserve(static_cast<std::size_t>(given.size()));
    for (Py_ssize_t i = 0; i < given.size(); ++i) {
        const auto device = device_in(given[i]);
        if (!device)
            return std::nullopt;
        found.push_back(*device);
    }
    return found;
}

bool PlainCalls::read(PyObject *object, Array *array) const {
    const ArrayReader &reader = transfers_.reader_;
    if (!reader.has(object))
        return false;
    require(reader.read(object, &array->memory));
    array->shape = checked(transfers_.arrays_.shape.of(object));
    array->dtype = checked(transfers_.arrays_.dtype.of(object));
    const ArrayMemory &memory = array->memory;
    return memory.is_c_contiguous && memory.device >= 0 && memory.device < transfers_.devices_.count();
}

bool PlainCalls::are_alike(const Array &one, const Array &other) {
    if (!one.dtype.is(other.dtype))
        return false;
    const int same = PyObject_RichCompareBool(one.shape.ptr(), other.shape.ptr(), Py_EQ);
    require(same >= 0);
    return same == 1;
}

nb::object PlainCalls::broadcast(nb::handle tensor, nb::handle devices, std::size_t small) {
    Array whole;
    if (!is_usable() || !read(tensor.ptr(), &whole) || whole.memory.bytes == 0)
        return nb::none();
    const ArrayMemory &from = whole.memory;
    const auto indices = devices_in(devices);
    if (!indices)
        return nb::none();
    const auto others = indices->size() - static_cast<std::size_t>(
                                              std::count(indices->begin(), indices->end(), from.device));
    if (others > 1 && from.bytes >= small)
        return nb::none();
    for (const int device : *indices)
        transfers_.reaches(from.device, device);
    nb::object made = new_list(static_cast<Py_ssize_t>(indices->size()));
    std::vector<nb::object> pointers;
    {
        Call call(*this);
        const End start{call.place(from.device), from.address};
        std::vector<End> ends;
        if (others != 0)
            call.run([&](Transfer &work) { return work.record(start.place); });
        for (const int device : *indices)
            if (device != from.device) {
                pointers.push_back(call.allocate(from.bytes, device));
                ends.push_back(call.end_of(pointers.back(), device));
            }
        if (others != 0)
            call.run([&](Transfer &work) {
                return work.record(ends.back().place) && // the context of this device is current
                        work.send(ends, start, from.bytes);
            });
    }
    auto pointer = pointers.begin();
    for (std::size_t i = 0; i < indices->size(); ++i)
        put(made, i,
            (*indices)[i] == from.device
                ? nb::borrow(tensor)
                : transfers_.array_at((pointer++)->ptr(), 0, whole.shape.ptr(), whole.dtype.ptr()));
    return made;
}

nb::object PlainCalls::scatter(nb::handle tensor, nb::handle devices) {
    Array whole;
    if (!is_usable() || !read(tensor.ptr(), &whole) || whole.memory.bytes == 0)
        return nb::none();
    const ArrayMemory &from = whole.memory;
    const Items axes(whole.shape);
    const auto indices = devices_in(devices);
    if (!indices || indices->empty() || axes.size() == 0)
        return nb::none();
    const auto rows = static_cast<std::uint64_t>(axes.integer_at(0)), row_bytes = from.bytes / rows;
    const std::uint64_t length = (rows + indices->size() - 1) / indices->size(), count = (rows + length - 1) / length;
    for (std::size_t i = 0; i < count; ++i)
        transfers_.reaches(from.device, (*indices)[i]);
    const auto length_of = [&](std::uint64_t part) { return std::min(length, rows - part * length); };
    nb::object made = new_list(static_cast<Py_ssize_t>(count));
    std::vector<nb::object> pointers(count);
    {
        Call call(*this);
        const Place here = call.place(from.device);
        std::vector<Copy> copies;
        if (std::any_of(indices->begin(), indices->begin() + static_cast<std::ptrdiff_t>(count),
                        [&](int device) { return device != from.device; }))
            call.run([&](Transfer &work) { return work.record(here); });
        for (std::size_t i = 0; i < count; ++i) {
            const int device = (*indices)[i];
            if (device == from.device)
                continue;
            const std::uint64_t bytes = length_of(i) * row_bytes;
            pointers[i] = call.allocate(bytes, device);
            copies.push_back({call.end_of(pointers[i], device), from.address + i * length * row_bytes, bytes});
        }
        if (!copies.empty())
            call.run([&](Transfer &work) {
                return work.record(copies.back().target.place) && work.send(copies, here);
            });
    }
    for (std::size_t i = 0; i < count; ++i) {
        const nb::object own_length = checked(PyLong_FromUnsignedLongLong(length_of(i)));
        put(made, i,
            pointers[i].is_valid() ? transfers_.array_at(pointers[i].ptr(), 0, shape_of_part(axes, own_length.ptr()).ptr(),
                                                         whole.dtype.ptr())
                                   : part_of(tensor, i * length, i * length + length_of(i)));
    }
    return tuple_of(made);
}

nb::object PlainCalls::gather(nb::handle tensors, nb::handle destination) {
    const auto target = device_in(destination.ptr());
    if (!is_usable() || !target || !is_list(tensors))
        return nb::none();
    const Items given(tensors);
    Arrays parts(static_cast<std::size_t>(given.size()));
    if (parts.empty())
        return nb::none();
    std::uint64_t bytes = 0;
    long long rows = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!read(given[static_cast<Py_ssize_t>(i)], &parts[i]) || parts[i].memory.bytes == 0 ||
            !parts[i].dtype.is(parts[0].dtype))
            return nb::none();
        const Items axes(parts[i].shape);
        if (axes.size() == 0 || !have_same_rows(axes, Items(parts[0].shape)))
            return nb::none();
        bytes += parts[i].memory.bytes;
        rows += axes.integer_at(0);
    }
    for (const Array &part : parts)
        transfers_.reaches(part.memory.device, *target);
    nb::object pointer;
    {
        Call call(*this);
        const std::vector<Place> others = call.record_others(parts, *target);
        pointer = call.allocate(bytes, *target);
        const End end = call.end_of(pointer, *target);
        std::vector<Piece> pieces;
        std::uint64_t address = end.address;
        for (const Array &part : parts) {
            const ArrayMemory &from = part.memory;
            pieces.push_back({{call.known_place(from.device), from.address}, address, from.bytes});
            address += from.bytes;
        }
        call.run([&](Transfer &work) { return work.record(end.place) && work.join(pieces, end.place, others); });
    }
    const nb::object length = checked(PyLong_FromLongLong(rows)), shape = shape_of_part(Items(parts[0].shape), length.ptr());
    return transfers_.array_at(pointer.ptr(), 0, shape.ptr(), parts[0].dtype.ptr());
}

nb::object PlainCalls::reduce_add(nb::handle inputs, nb::handle destination, std::size_t small) {
    const auto root = device_in(destination.ptr());
    if (!is_usable() || !root || !is_list(inputs))
        return nb::none();
    const Items given(inputs);
    const auto count = static_cast<std::size_t>(given.size());
    if (count < 2 || count > most_inputs)
        return nb::none();
    Arrays terms(count);
    std::size_t own = count;
    for (std::size_t i = 0; i < count; ++i) {
        if (!read(given[static_cast<Py_ssize_t>(i)], &terms[i]) || !are_alike(terms[0], terms[i]))
            return nb::none();
        if (terms[i].memory.device == *root)
            own = i;
    }
    const std::uint64_t bytes = terms[0].memory.bytes;
    if (own == count || bytes == 0 || (count > 2 && bytes >= small))
        return nb::none();
    std::rotate(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(own),
                terms.begin() + static_cast<std::ptrdiff_t>(own) + 1);
    const Array &like = terms[0];
    const std::uint64_t itemsize = itemsize_of(like.dtype);
    std::vector<ArrayMemory> memories;
    for (const Array &term : terms)
        memories.push_back(term.memory);
    const libcuda::Function kernel = transfers_.sum_of(*root, memories, like.dtype);
    if (kernel == 0)
        return nb::none();
    nb::object pointer;
    {
        Call call(*this);
        const std::vector<Place> peers = call.record_others(terms, *root);
        pointer = call.allocate(bytes, *root);
        End out = call.end_of(pointer, *root);
        std::uint64_t addresses[most_inputs];
        for (std::size_t i = 0; i < count; ++i)
            addresses[i] = terms[i].memory.address;
        std::uint64_t size = bytes / itemsize;
        const unsigned blocks = transfers_.addition_blocks(*root, bytes);
        call.run([&](Transfer &work) {
            WorkNotes notes;
            note_addition(notes, out.address, addresses, count, bytes);
            void *arguments[] = {&out.address, addresses, &size};
            return work.add(out.place, peers, kernel, blocks, add_threads, arguments);
        });
    }
    return transfers_.array_at(pointer.ptr(), 0, like.shape.ptr(), like.dtype.ptr());
}

nb::object PlainCalls::broadcast_coalesced(nb::handle tensors, nb::handle devices, nb::handle buffer_size,
                                           std::size_t small) {
    const auto most_bytes = bytes_in(buffer_size);
    if (!is_usable() || !is_list(tensors) || !most_bytes)
        return nb::none();
    const auto indices = devices_in(devices);
    if (!indices || indices->size() < 2)
        return nb::none();
    const int home = indices->front();
    const Items given(tensors);
    const auto count = static_cast<std::size_t>(given.size());
    Arrays arrays(count);
    std::vector<PackedArray> packed;
    packed.reserve(count);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const ArrayMemory &from = arrays[i].memory;
        if (!read(given[static_cast<Py_ssize_t>(i)], &arrays[i]) || from.device != home)
            return nb::none();
        packed.push_back({from.address, from.bytes, bytes});
        bytes += padded(from.bytes);
    }
    if (count < 2 || bytes == 0 || bytes >= *most_bytes || (indices->size() > 2 && bytes >= small) ||
        std::count(indices->begin() + 1, indices->end(), home) != 0)
        return nb::none();
    for (const int device : *indices)
        transfers_.reaches(home, device);
    const PackKernel kernel = transfers_.pack_kernel(home, count);
    std::vector<nb::object> pointers;
    {
        Call call(*this);
        const nb::object flat = call.allocate(bytes, home);
        const End start = call.end_of(flat, home);
        std::vector<End> ends;
        for (std::size_t i = 1; i < indices->size(); ++i) {
            pointers.push_back(call.allocate(bytes, (*indices)[i]));
            ends.push_back(call.end_of(pointers.back(), (*indices)[i]));
        }
        call.run([&](Transfer &work) {
            Place lane;
            return work.open(start.place, &lane) && pack_with_notes(work, lane, kernel, start.address, packed) &&
                   work.send(ends, start, bytes);
        });
    }
    nb::object made = new_list(static_cast<Py_ssize_t>(indices->size()));
    put(made, 0, checked(PySequence_List(tensors.ptr())));
    for (std::size_t i = 1; i < indices->size(); ++i) {
        nb::object views = new_list(static_cast<Py_ssize_t>(count));
        for (std::size_t place = 0; place < count; ++place)
            put(views, place,
                transfers_.array_at(pointers[i - 1].ptr(), packed[place].offset, arrays[place].shape.ptr(),
                                    arrays[place].dtype.ptr()));
        put(made, i, std::move(views));
    }
    return made;
}

// The arrays of one dtype at some places of all rows.
class PlainCalls::Group {
public:
    explicit Group(nb::object dtype_) : dtype(std::move(dtype_)) {}

    bool is_packed() const { return places.size() > 1; }

    nb::object dtype;
    std::vector<std::size_t> places;
    std::vector<std::uint64_t> offsets; // of the places
    std::uint64_t bytes = 0, itemsize = 0;
    std::vector<std::vector<PackedArray>> packed; // by row
    std::vector<nb::object> flats;                // the memory of the packed arrays by row, and of the sums
    std::vector<std::uint64_t> terms;             // the addresses of the terms by row, and of the sums
    libcuda::Function sum = 0;
};

nb::object PlainCalls::reduce_add_coalesced(nb::handle inputs, nb::handle destination, nb::handle buffer_size,
                                            std::size_t small) {
    const auto root = device_in(destination.ptr());
    const auto most_bytes = bytes_in(buffer_size);
    if (!is_usable() || !root || !is_list(inputs) || !most_bytes)
        return nb::none();
    const Items given(inputs);
    const auto count = static_cast<std::size_t>(given.size());
    if (count < 2 || count > most_inputs)
        return nb::none();
    std::vector<Arrays> rows(count);
    std::size_t own = count, columns = 0;
    for (std::size_t row = 0; row < count; ++row) {
        if (!is_list(given[static_cast<Py_ssize_t>(row)]))
            return nb::none();
        const Items arrays(nb::handle(given[static_cast<Py_ssize_t>(row)]));
        if (row == 0)
            columns = static_cast<std::size_t>(arrays.size());
        if (columns == 0 || arrays.size() != static_cast<Py_ssize_t>(columns))
            return nb::none();
        rows[row].resize(columns);
        for (std::size_t place = 0; place < columns; ++place) {
            Array &array = rows[row][place];
            if (!read(arrays[static_cast<Py_ssize_t>(place)], &array) ||
                array.memory.device != rows[row][0].memory.device || !are_alike(rows[0][place], array))
                return nb::none();
        }
        if (rows[row][0].memory.device == *root)
            own = row;
    }
    if (own == count)
        return nb::none();
    const auto first_row = static_cast<std::ptrdiff_t>(own);
    std::rotate(rows.begin(), rows.begin() + first_row, rows.begin() + first_row + 1);

    std::vector<Group> groups;
    std::vector<std::pair<std::size_t, std::uint64_t>> found; // the group of each place, and the place in the group
    for (std::size_t place = 0; place < columns; ++place) {
        const nb::object &dtype = rows[0][place].dtype;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const Group &each) { return each.dtype.is(dtype); });
        if (group == groups.end()) {
            groups.emplace_back(dtype);
            group = groups.end() - 1;
            group->itemsize = itemsize_of(dtype);
        }
        found.emplace_back(group - groups.begin(), group->bytes);
        group->places.push_back(place);
        group->offsets.push_back(group->bytes);
        group->bytes += padded(rows[0][place].memory.bytes);
    }
    for (Group &group : groups) {
        if ((group.is_packed() && group.bytes > *most_bytes) || group.bytes == 0 || (count > 2 && group.bytes >= small))
            return nb::none();
        if (!group.is_packed())
            group.bytes = rows[0][group.places[0]].memory.bytes;
        std::vector<ArrayMemory> terms;
        for (const Arrays &row : rows)
            terms.push_back(row[group.places[0]].memory);
        group.sum = transfers_.sum_of(*root, terms, group.dtype);
        if (group.sum == 0)
            return nb::none();
    }
    std::vector<PackKernel> kernels;
    for (const Arrays &row : rows)
        kernels.push_back(transfers_.pack_kernel(row[0].memory.device, columns));
    {
        Call call(*this);
        std::vector<Place> places, peers;
        for (const Arrays &row : rows)
            places.push_back(call.place(row[0].memory.device));
        for (const Place &place : places)
            if (!(place == places[0]) && std::find(peers.begin(), peers.end(), place) == peers.end())
                peers.push_back(place);
        for (Group &group : groups) {
            for (std::size_t row = 0; row < count; ++row) {
                if (!group.is_packed()) {
                    group.terms.push_back(rows[row][group.places[0]].memory.address);
                    continue;
                }
                group.packed.emplace_back();
                for (std::size_t i = 0; i < group.places.size(); ++i) {
                    const ArrayMemory &from = rows[row][group.places[i]].memory;
                    group.packed.back().push_back({from.address, from.bytes, group.offsets[i]});
                }
                group.flats.push_back(call.allocate(group.bytes, places[row].device));
                group.terms.push_back(call.end_of(group.flats.back(), places[row].device).address);
            }
            group.flats.push_back(call.allocate(group.bytes, *root));
            group.terms.push_back(call.end_of(group.flats.back(), *root).address);
        }
        call.run([&](Transfer &work) {
            std::vector<Place> lanes(count);
            for (std::size_t row = count; row-- > 0;) { // the devices of the peers begin first
                if (!work.open(places[row], &lanes[row]))
                    return false;
                for (const Group &group : groups)
                    if (group.is_packed() &&
                        !pack_with_notes(work, lanes[row], kernels[row], group.terms[row], group.packed[row]))
                        return false;
            }
            for (std::size_t row = 1; row < count; ++row)
                if (!work.wait(lanes[0], lanes[row]))
                    return false;
            for (Group &group : groups) {
                std::uint64_t size = group.bytes / group.itemsize;
                WorkNotes notes;
                note_addition(notes, group.terms[count], group.terms.data(), count, group.bytes);
                void *arguments[] = {&group.terms[count], group.terms.data(), &size};
                const unsigned blocks = transfers_.addition_blocks(*root, group.bytes);
                if (!work.launch(lanes[0], group.sum, blocks, add_threads, arguments))
                    return false;
            }
            return work.finish(lanes[0], peers) && work.close();
        });
    }
    nb::object made = new_list(static_cast<Py_ssize_t>(columns));
    for (std::size_t place = 0; place < columns; ++place) {
        const nb::object &sums = groups[found[place].first].flats.back();
        const Array &like = rows[0][place];
        put(made, place, transfers_.array_at(sums.ptr(), found[place].second, like.shape.ptr(), like.dtype.ptr()));
    }
    return tuple_of(made);
}

nb::object PlainCalls::places(nb::handle inputs, nb::handle outputs) const {
    const bool is_in_place = outputs.is_none();
    if (!is_list(inputs) || !(is_in_place || is_list(outputs)))
        return nb::none();
    const Items given(inputs), got(is_in_place ? inputs : outputs);
    const Py_ssize_t count = given.size();
    if (count == 0 || got.size() != count)
        return nb::none();
    const nb::object devices = new_tuple(count), sources = new_tuple(count),
                     targets = is_in_place ? nb::object() : new_tuple(count);
    Array first, first_target, source, target;
    std::uint64_t seen = 0; // a bit for each device
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!read(given[i], &source) || !(is_in_place || read(got[i], &target)))
            return nb::none();
        const Array &result = is_in_place ? source : target;
        if (i == 0) {
            first = source;
            first_target = result;
        }
        if (!source.dtype.is(first.dtype) || !result.dtype.is(first.dtype) ||
            source.memory.bytes != first.memory.bytes || result.memory.bytes != first_target.memory.bytes ||
            source.memory.device >= 64 || result.memory.device != source.memory.device ||
            (seen >> source.memory.device & 1) != 0)
            return nb::none();
        seen |= std::uint64_t(1) << source.memory.device;
        put_number(devices, i, static_cast<std::uint64_t>(source.memory.device));
        put_number(sources, i, source.memory.address);
        if (!is_in_place)
            put_number(targets, i, target.memory.address);
    }
    const std::uint64_t itemsize = itemsize_of(first.dtype);
    const Owned size(PyLong_FromUnsignedLongLong(first.memory.bytes / itemsize)),
        target_size(PyLong_FromUnsignedLongLong(first_target.memory.bytes / itemsize));
    require(size && target_size);
    return checked(PyTuple_Pack(6, devices.ptr(), first.dtype.ptr(), size.get(), target_size.get(), sources.ptr(),
                                (is_in_place ? sources : targets).ptr()));
}

} // namespace tcuda
