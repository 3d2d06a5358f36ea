#include "bindings/plain_calls.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/transfer_call.hpp"
#include "bindings/work_notes.hpp"
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
        nb::object made = checked(PyObject_Vectorcall(owner_.allocate_.ptr(), arguments, 1, nullptr));
        if (!owner_.layout().is_pointer(made.ptr()))
            throw nb::type_error("CuPy's allocator has returned no pointer to memory");
        return made;
    }
    End end_of(nb::handle pointer, int device) {
        return {known_place(device), static_cast<std::uint64_t>(ArrayLayout::pointer_of(pointer.ptr()).ptr)};
    }

    // Records the work of the streams of all devices but `device`, and returns the streams.
    std::vector<Place> record_others(const std::vector<ArrayMemory> &memories, int device) {
        std::vector<Place> others;
        for (const ArrayMemory &memory : memories) {
            if (memory.device == device)
                continue;
            const Place other = place(memory.device);
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

bool PlainCalls::is_usable() const {
    return transfers_.reader_.layout() != nullptr && PyList_Size(transfers_.captures_.ptr()) == 0;
}

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

bool PlainCalls::read(PyObject *array, ArrayMemory *memory) const {
    if (transfers_.reader_.layout_of(array) == nullptr)
        return false;
    require(transfers_.reader_.read(array, memory));
    return memory->is_c_contiguous && memory->device >= 0 && memory->device < transfers_.devices_.count();
}

nb::object PlainCalls::broadcast(nb::handle tensor, nb::handle devices, std::size_t small) {
    ArrayMemory from;
    if (!is_usable() || !read(tensor.ptr(), &from) || from.bytes == 0)
        return nb::none();
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
    const std::uint64_t itemsize = transfers_.reader_.itemsize_of(tensor.ptr());
    auto pointer = pointers.begin();
    for (std::size_t i = 0; i < indices->size(); ++i)
        put(made, i,
            (*indices)[i] == from.device
                ? nb::borrow(tensor)
                : checked(layout().array((pointer++)->ptr(), ArrayLayout::of(tensor.ptr()), -1, itemsize)));
    return made;
}

nb::object PlainCalls::scatter(nb::handle tensor, nb::handle devices) {
    ArrayMemory from;
    if (!is_usable() || !read(tensor.ptr(), &from) || from.bytes == 0)
        return nb::none();
    const ArrayLayout::Array &whole = ArrayLayout::of(tensor.ptr());
    const auto indices = devices_in(devices);
    if (!indices || indices->empty() || whole.shape.empty())
        return nb::none();
    const auto rows = static_cast<std::uint64_t>(whole.shape[0]), row_bytes = from.bytes / rows;
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
    const std::uint64_t itemsize = transfers_.reader_.itemsize_of(tensor.ptr());
    for (std::size_t i = 0; i < count; ++i) {
        const auto own_length = static_cast<Py_ssize_t>(length_of(i));
        put(made, i,
            checked(pointers[i].is_valid()
                        ? layout().array(pointers[i].ptr(), whole, own_length, itemsize)
                        : layout().part(tensor.ptr(), static_cast<Py_ssize_t>(i * length), own_length, itemsize)));
    }
    return tuple_of(made);
}

nb::object PlainCalls::gather(nb::handle tensors, nb::handle destination) {
    const auto target = device_in(destination.ptr());
    if (!is_usable() || !target || !is_list(tensors))
        return nb::none();
    const Items given(tensors);
    std::vector<ArrayMemory> parts(static_cast<std::size_t>(given.size()));
    if (parts.empty())
        return nb::none();
    std::uint64_t bytes = 0;
    Py_ssize_t rows = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        PyObject *const array = given[static_cast<Py_ssize_t>(i)];
        if (!read(array, &parts[i]) || parts[i].bytes == 0)
            return nb::none();
        const ArrayLayout::Array &first = ArrayLayout::of(given[0]), &members = ArrayLayout::of(array);
        if (members.shape.empty() || members.dtype != first.dtype || members.shape.size() != first.shape.size() ||
            !std::equal(members.shape.begin() + 1, members.shape.end(), first.shape.begin() + 1))
            return nb::none();
        bytes += parts[i].bytes;
        rows += members.shape[0];
    }
    for (const ArrayMemory &part : parts)
        transfers_.reaches(part.device, *target);
    nb::object pointer;
    {
        Call call(*this);
        const std::vector<Place> others = call.record_others(parts, *target);
        pointer = call.allocate(bytes, *target);
        const End end = call.end_of(pointer, *target);
        std::vector<Piece> pieces;
        std::uint64_t address = end.address;
        for (const ArrayMemory &part : parts) {
            pieces.push_back({{call.known_place(part.device), part.address}, address, part.bytes});
            address += part.bytes;
        }
        call.run([&](Transfer &work) { return work.record(end.place) && work.join(pieces, end.place, others); });
    }
    return checked(layout().array(pointer.ptr(), ArrayLayout::of(given[0]), rows,
                                  transfers_.reader_.itemsize_of(given[0])));
}

nb::object PlainCalls::reduce_add(nb::handle inputs, nb::handle destination, std::size_t small) {
    const auto root = device_in(destination.ptr());
    if (!is_usable() || !root || !is_list(inputs))
        return nb::none();
    const Items given(inputs);
    const auto count = static_cast<std::size_t>(given.size());
    if (count < 2 || count > most_inputs)
        return nb::none();
    std::vector<ArrayMemory> terms(count);
    std::size_t own = count;
    for (std::size_t i = 0; i < count; ++i) {
        PyObject *const array = given[static_cast<Py_ssize_t>(i)];
        if (!read(array, &terms[i]) || ArrayLayout::of(array).dtype != ArrayLayout::of(given[0]).dtype ||
            ArrayLayout::of(array).shape != ArrayLayout::of(given[0]).shape)
            return nb::none();
        if (terms[i].device == *root)
            own = i;
    }
    const std::uint64_t bytes = terms[0].bytes;
    if (own == count || bytes == 0 || (count > 2 && bytes >= small))
        return nb::none();
    std::rotate(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(own),
                terms.begin() + static_cast<std::ptrdiff_t>(own) + 1);
    const ArrayLayout::Array &like = ArrayLayout::of(given[0]);
    const libcuda::Function kernel = transfers_.sum_of(*root, terms, like.dtype);
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
            addresses[i] = terms[i].address;
        auto size = static_cast<std::uint64_t>(like.size);
        const unsigned blocks = transfers_.addition_blocks(*root, bytes);
        call.run([&](Transfer &work) {
            WorkNotes notes;
            note_addition(notes, out.address, addresses, count, bytes);
            void *arguments[] = {&out.address, addresses, &size};
            return work.add(out.place, peers, kernel, blocks, add_threads, arguments);
        });
    }
    return checked(layout().array(pointer.ptr(), like, -1, transfers_.reader_.itemsize_of(given[0])));
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
    std::vector<PackedArray> packed;
    packed.reserve(count);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        ArrayMemory from;
        if (!read(given[static_cast<Py_ssize_t>(i)], &from) || from.device != home)
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
        const ArrayLayout::Pointer &flat = ArrayLayout::pointer_of(pointers[i - 1].ptr());
        nb::object views = new_list(static_cast<Py_ssize_t>(count));
        for (std::size_t place = 0; place < count; ++place)
            put(views, place,
                checked(layout().view(flat, static_cast<std::uint64_t>(flat.ptr) + packed[place].offset,
                                      ArrayLayout::of(given[static_cast<Py_ssize_t>(place)]))));
        put(made, i, std::move(views));
    }
    return made;
}

// The arrays of one dtype at some places of all rows.
class PlainCalls::Group {
public:
    explicit Group(PyObject *dtype_) : dtype(dtype_) {}

    bool is_packed() const { return places.size() > 1; }

    PyObject *const dtype;
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
    std::vector<std::unique_ptr<const Items>> rows;
    std::vector<std::vector<ArrayMemory>> memories(count);
    std::size_t own = count, columns = 0;
    for (std::size_t row = 0; row < count; ++row) {
        if (!is_list(given[static_cast<Py_ssize_t>(row)]))
            return nb::none();
        rows.push_back(std::make_unique<const Items>(nb::handle(given[static_cast<Py_ssize_t>(row)])));
        const Items &arrays = *rows.back(), &first = *rows.front();
        columns = static_cast<std::size_t>(first.size());
        if (columns == 0 || arrays.size() != first.size())
            return nb::none();
        memories[row].resize(columns);
        for (std::size_t place = 0; place < columns; ++place) {
            PyObject *const array = arrays[static_cast<Py_ssize_t>(place)], *const like =
                first[static_cast<Py_ssize_t>(place)];
            if (!read(array, &memories[row][place]) || memories[row][place].device != memories[row][0].device ||
                ArrayLayout::of(array).dtype != ArrayLayout::of(like).dtype ||
                ArrayLayout::of(array).shape != ArrayLayout::of(like).shape)
                return nb::none();
        }
        if (memories[row][0].device == *root)
            own = row;
    }
    if (own == count)
        return nb::none();
    const auto first_row = static_cast<std::ptrdiff_t>(own);
    std::rotate(memories.begin(), memories.begin() + first_row, memories.begin() + first_row + 1);

    std::vector<Group> groups;
    std::vector<std::pair<std::size_t, std::uint64_t>> found; // the group of each place, and the place in the group
    for (std::size_t place = 0; place < columns; ++place) {
        PyObject *const array = (*rows[0])[static_cast<Py_ssize_t>(place)], *const dtype = ArrayLayout::of(array).dtype;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const Group &each) { return each.dtype == dtype; });
        if (group == groups.end()) {
            groups.emplace_back(dtype);
            group = groups.end() - 1;
            group->itemsize = transfers_.reader_.itemsize_of(array);
        }
        found.emplace_back(group - groups.begin(), group->bytes);
        group->places.push_back(place);
        group->offsets.push_back(group->bytes);
        group->bytes += padded(memories[0][place].bytes);
    }
    for (Group &group : groups) {
        if ((group.is_packed() && group.bytes > *most_bytes) || group.bytes == 0 || (count > 2 && group.bytes >= small))
            return nb::none();
        if (!group.is_packed())
            group.bytes = memories[0][group.places[0]].bytes;
        std::vector<ArrayMemory> terms;
        for (const auto &row : memories)
            terms.push_back(row[group.places[0]]);
        group.sum = transfers_.sum_of(*root, terms, group.dtype);
        if (group.sum == 0)
            return nb::none();
    }
    std::vector<PackKernel> kernels;
    for (const auto &row : memories)
        kernels.push_back(transfers_.pack_kernel(row[0].device, columns));
    {
        Call call(*this);
        std::vector<Place> places, peers;
        for (const auto &row : memories)
            places.push_back(call.place(row[0].device));
        for (const Place &place : places)
            if (!(place == places[0]) && std::find(peers.begin(), peers.end(), place) == peers.end())
                peers.push_back(place);
        for (Group &group : groups) {
            for (std::size_t row = 0; row < count; ++row) {
                if (!group.is_packed()) {
                    group.terms.push_back(memories[row][group.places[0]].address);
                    continue;
                }
                group.packed.emplace_back();
                for (std::size_t i = 0; i < group.places.size(); ++i) {
                    const ArrayMemory &from = memories[row][group.places[i]];
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
        const ArrayLayout::Pointer &flat = ArrayLayout::pointer_of(groups[found[place].first].flats.back().ptr());
        put(made, place,
            checked(layout().view(flat, static_cast<std::uint64_t>(flat.ptr) + found[place].second,
                                  ArrayLayout::of((*rows[0])[static_cast<Py_ssize_t>(place)]))));
    }
    return tuple_of(made);
}

nb::object PlainCalls::places(nb::handle inputs, nb::handle outputs) const {
    const bool is_in_place = outputs.is_none();
    const ArrayLayout *const known = transfers_.reader_.layout();
    if (known == nullptr || !is_list(inputs) || !(is_in_place || is_list(outputs)))
        return nb::none();
    const Items given(inputs), got(is_in_place ? inputs : outputs);
    const Py_ssize_t count = given.size();
    if (count == 0 || got.size() != count || !known->has(given[0]) || !known->has(got[0]))
        return nb::none();
    const ArrayLayout::Array &first = ArrayLayout::of(given[0]), &first_target = ArrayLayout::of(got[0]);
    const auto is_like = [&](PyObject *array, const ArrayLayout::Array &like) {
        return known->has(array) && ArrayLayout::of(array).is_c_contiguous != 0 &&
               ArrayLayout::of(array).dtype == first.dtype && ArrayLayout::of(array).size == like.size;
    };
    const nb::object devices = new_tuple(count), sources = new_tuple(count),
                     targets = is_in_place ? nb::object() : new_tuple(count);
    std::uint64_t seen = 0; // a bit for each device
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!is_like(given[i], first) || !is_like(got[i], first_target))
            return nb::none();
        const ArrayLayout::Pointer &source = *ArrayLayout::of(given[i]).data, &target = *ArrayLayout::of(got[i]).data;
        if (source.device_id < 0 || source.device_id >= 64 || target.device_id != source.device_id ||
            (seen >> source.device_id & 1) != 0)
            return nb::none();
        seen |= std::uint64_t(1) << source.device_id;
        put_number(devices, i, static_cast<std::uint64_t>(source.device_id));
        put_number(sources, i, static_cast<std::uint64_t>(source.ptr));
        if (!is_in_place)
            put_number(targets, i, static_cast<std::uint64_t>(target.ptr));
    }
    const Owned size(PyLong_FromSsize_t(first.size)), target_size(PyLong_FromSsize_t(first_target.size));
    require(size && target_size);
    return checked(PyTuple_Pack(6, devices.ptr(), first.dtype, size.get(), target_size.get(), sources.ptr(),
                                (is_in_place ? sources : targets).ptr()));
}

} // namespace tcuda
