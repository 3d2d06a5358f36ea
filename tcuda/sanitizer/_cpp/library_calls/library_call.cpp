#include "sanitizer/_cpp/library_calls/library_call.hpp"

#include <utility>
#include <vector>

#include "sanitizer/_cpp/library_calls/known_memory.hpp"
#include "sanitizer/_cpp/library_calls/thread_notes.hpp"
#include "sanitizer/_cpp/library_calls/transform.hpp"

namespace tcuda::library_calls {

using kernel_uses::Kind;
using races::Region;

LibraryCall::LibraryCall(std::size_t function, Values values) noexcept
    : signature_(signatures()[function]), values_(values), thread_(ThreadNotes::of_thread()) {
    if (thread_ == nullptr)
        return;
    try {
        thread_->lend(notes_);
        note();
    } catch (...) {
        notes_.memory.clear();
    }
    scope_.emplace(notes_);
}

// The destructor is not in the header, so that the many thunks are small.
LibraryCall::~LibraryCall() { unnote(); }

void LibraryCall::unnote() {
    if (!scope_)
        return;
    scope_.reset();
    try {
        thread_->take_back(notes_);
    } catch (...) {
        // The next call takes new memory.
    }
}

void LibraryCall::returned(std::uint64_t result) noexcept {
    unnote();
    if (thread_ == nullptr)
        return;
    OpenGroup &group = thread_->group();
    if (signature_.extra == Extra::group_end)
        group.close();
    if (std::uint32_t(result) != 0)
        return; // the function has failed
    if (signature_.extra == Extra::group_start)
        group.open();
    try {
        learn();
    } catch (...) {
        // The object stays unknown, or keeps what was known of it.
    }
}

void LibraryCall::begin_era() { OpenGroup::begin_era(); }

void LibraryCall::note() {
    notes_.name = signature_.name;
    OpenGroup &group = thread_->group();
    if (signature_.extra == Extra::group_end) {
        notes_.memory = group.noted();
        return;
    }
    for (std::size_t index = 0; index < signature_.arguments.size(); ++index)
        note_argument(index);
    if (signature_.extra == Extra::fft)
        note_transform();
    merge();
    // Without some of the memory, the kernels tell what they use; the notes tell the extents only.
    if (!complete_)
        for (watch::NotedMemory &memory : notes_.memory)
            memory.kind_known = false;
    if (signature_.extra == Extra::grouped && group.is_open())
        group.add(notes_.memory, values_[signature_.stream]);
}

void LibraryCall::note_argument(std::size_t index) {
    const Argument &argument = signature_.arguments[index];
    Kind kind;
    switch (argument.role) {
    case Role::read:
    case Role::table:
        kind = Kind::read;
        break;
    case Role::write:
        kind = Kind::write;
        break;
    case Role::both:
    case Role::maybe:
    case Role::keeps:
        kind = Kind::both;
        break;
    case Role::object:
    case Role::reads:
    case Role::writes:
    case Role::fills:
        note_object(index, argument.role);
        return;
    default:
        return;
    }
    if (signature_.extra == Extra::fft)
        return; // note_transform() knows more
    watch::NotedMemory &noted = add(kind, argument.label);
    noted.kind_known = argument.role != Role::maybe;
    const Signature::Memory memory = signature_.find(values_, index, noted.region);
    noted.extent_known = memory == Signature::Memory::exact;
    if (memory == Signature::Memory::none)
        thread_->remove_last(notes_);
}

void LibraryCall::note_object(std::size_t index, Role role) {
    bool known = false;
    KnownMemory::instance().read(signature_.object(values_, index), [&](const KnownObject &object) {
        known = true;
        for (const HeldMemory &held : object.memory) {
            const bool workspace = held.part == HeldMemory::Part::workspace;
            if (workspace != (role == Role::object))
                continue;
            Kind kind = workspace ? Kind::both : Kind::read;
            if (role == Role::fills || (role == Role::writes && held.part == HeldMemory::Part::values))
                kind = Kind::write;
            const std::string &label = signature_.arguments[index].label;
            watch::NotedMemory &noted = add(kind, workspace ? held.label : label + "." + held.label);
            noted.region = held.region;
            noted.extent_known = held.extent_known;
        }
    });
    if (!known && role != Role::object)
        complete_ = false;
}

void LibraryCall::note_transform() {
    std::optional<PlannedTransform> planned;
    std::size_t input = 0;
    while (signature_.arguments[input].label != "input")
        ++input;
    KnownMemory::instance().read(signature_.object(values_, 0), [&](const KnownObject &object) {
        if (object.planned)
            planned = object.transform;
    });
    const bool any_type = signature_.name == "cufftXtExec";
    for (const std::size_t index : {input, input + 1}) {
        const auto address = Address(values_[index]);
        if (address == 0)
            continue;
        Kind kind = signature_.arguments[index].role == Role::write  ? Kind::write
                    : signature_.arguments[index].role == Role::read ? Kind::read
                                                                     : Kind::both;
        if (planned && index == input && any_type && !planned->into_input)
            kind = Kind::read;
        watch::NotedMemory &noted = add(kind, signature_.arguments[index].label);
        noted.extent_known = planned.has_value();
        if (!planned) {
            noted.region.set(address, 1, {{1, 1}});
            complete_ = complete_ && !any_type;
        } else if (index == input) {
            noted.region.set(address, planned->input_item, planned->input);
        } else {
            noted.region.set(address, planned->output_item, planned->output);
        }
    }
}

// Several arguments may be one pointer: a call that works in place. The reader of the notes takes the first note of an
// address.
void LibraryCall::merge() {
    auto &memory = notes_.memory;
    for (std::size_t first = 0; first < memory.size(); ++first)
        for (std::size_t other = first + 1; other < memory.size();) {
            if (memory[other].region.address() != memory[first].region.address()) {
                ++other;
                continue;
            }
            const Kind kind = memory[first].kind | memory[other].kind;
            memory[first].kind = memory[other].kind = kind;
            memory[first].kind_known = memory[other].kind_known = memory[first].kind_known && memory[other].kind_known;
            const bool covered = memory[first].extent_known == memory[other].extent_known &&
                                 (!memory[first].extent_known || covers(memory[first].region, memory[other].region));
            if (covered)
                memory.erase(memory.begin() + std::ptrdiff_t(other));
            else
                ++other;
        }
}

watch::NotedMemory &LibraryCall::add(Kind kind, const std::string &label) {
    watch::NotedMemory &memory = thread_->add(notes_);
    memory.extent_known = false;
    memory.kind_known = true;
    memory.kind = kind;
    memory.label = label;
    return memory;
}

void LibraryCall::learn() {
    switch (signature_.extra) {
    case Extra::fft_plan_1d:
    case Extra::fft_plan_many:
    case Extra::fft_plan_many_wide:
        learn_transform();
        return;
    default:
        break;
    }
    for (std::size_t index = 0; index < signature_.arguments.size(); ++index)
        learn_object(index, signature_.arguments[index].role);
}

void LibraryCall::learn_object(std::size_t index, Role role) {
    using Part = HeldMemory::Part;
    KnownMemory &known = KnownMemory::instance();
    std::uint64_t object = signature_.object(values_, index);
    switch (role) {
    case Role::ends:
        known.forget(object);
        return;
    case Role::resizes:
        known.change(object, [](KnownObject &changed) {
            for (HeldMemory &held : changed.memory)
                held.extent_known = false;
        });
        return;
    case Role::create:
        if (object == 0)
            return;
        object = *reinterpret_cast<const std::uint64_t *>(object);
        known.forget(object); // the library may use the address of an object that has ended
        break;
    case Role::repoints:
    case Role::object:
        break;
    default:
        return;
    }

    std::vector<HeldMemory> held;
    bool values = false, structure = false, workspaces = false;
    for (std::size_t other = 0; other < signature_.arguments.size(); ++other) {
        const Argument &argument = signature_.arguments[other];
        HeldMemory memory;
        switch (argument.role) {
        case Role::holds:
            memory.part = Part::values;
            values = true;
            break;
        case Role::indexes:
            memory.part = Part::structure;
            structure = true;
            break;
        case Role::keeps:
            break;
        case Role::sets:
            workspaces = true;
            break;
        default:
            continue;
        }
        const Signature::Memory found = signature_.find(values_, other, memory.region);
        if (found == Signature::Memory::none)
            continue;
        memory.extent_known = found == Signature::Memory::exact;
        memory.label = argument.label;
        held.push_back(std::move(memory));
    }
    if (role == Role::object && held.empty() && !workspaces)
        return;
    known.change(object, [&](KnownObject &changed) {
        for (HeldMemory &now : held)
            if (workspaces && changed.planned && changed.transform.work_area != 0) {
                now.region.set(now.region.address(), 1, {{std::int64_t(changed.transform.work_area), 1}});
                now.extent_known = true;
            }
        std::vector<HeldMemory> all;
        for (HeldMemory &before : changed.memory) {
            bool replaced = before.part == Part::values      ? values
                            : before.part == Part::structure ? structure
                                                             : workspaces;
            for (const HeldMemory &now : held)
                replaced = replaced || now.region.address() == before.region.address();
            if (!replaced)
                all.push_back(std::move(before));
        }
        for (HeldMemory &now : held)
            all.push_back(std::move(now));
        changed.memory = std::move(all);
    });
}

void LibraryCall::learn_transform() {
    const std::optional<PlannedTransform> transform = transform_of(signature_.extra, values_);
    KnownMemory::instance().change(signature_.object(values_, 0), [&](KnownObject &object) {
        object.planned = transform.has_value();
        if (transform)
            object.transform = *transform;
    });
}

} // namespace tcuda::library_calls
