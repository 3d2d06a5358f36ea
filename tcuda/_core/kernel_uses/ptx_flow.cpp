#include "kernel_uses/ptx_flow.hpp"

#include <algorithm>
#include <string_view>

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr unsigned pointer_bytes = 8;

// Functions of the system that use no memory of a parameter.
bool is_harmless(std::string_view name) {
    return name == "vprintf" || name == "free" || name == "__assertfail" || name == "__assert_fail" ||
           name == "cudaGetLastError" || name == "__trap";
}

bool starts_with(std::string_view word, std::string_view begin) { return word.substr(0, begin.size()) == begin; }

std::int64_t moved(std::int64_t place, std::int64_t by) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(place) + static_cast<std::uint64_t>(by));
}

} // namespace

Flow::Flow(const Module &module, const Function &entry, std::size_t &steps)
    : module_(module), regions_(values_), unknown_shared_(regions_.add(Region::Kind::shared)),
      unknown_local_(regions_.add(Region::Kind::local)), steps_(steps) {
    add_frame(entry, 0);
    for (const auto argument : entry.arguments)
        region_of(0, argument);
}

std::uint32_t Flow::add_frame(const Function &function, std::uint32_t caller) {
    Frame frame;
    frame.function = &function;
    frame.caller = caller;
    frame.regions.assign(function.variables.size(), no_region);
    const auto &written = written_registers(function);
    frame.registers.resize(function.registers);
    for (std::uint32_t number = 0; number < function.registers; ++number)
        if (!written[number])
            frame.registers[number] = Held(Values::plain);
    frames_.push_back(std::move(frame));
    return static_cast<std::uint32_t>(frames_.size() - 1);
}

const std::vector<bool> &Flow::written_registers(const Function &function) {
    const auto [found, is_new] = written_.emplace(&function, std::vector<bool>());
    auto &written = found->second;
    if (!is_new)
        return written;
    written.resize(function.registers);
    const auto mark = [&](const Operand &operand) {
        if (operand.kind == Operand::Kind::reg)
            written[operand.index] = true;
    };
    for (const auto &instruction : function.instructions)
        for (std::uint32_t at = 0; at < instruction.results; ++at) {
            const Operand &operand = function.operands[instruction.first + at];
            mark(operand);
            if (operand.kind == Operand::Kind::vector)
                for (std::uint32_t element = 0; element < operand.count; ++element)
                    mark(function.elements[operand.index + element]);
        }
    for (const auto argument : function.arguments)
        if (function.variables[argument].is_register)
            written[function.variables[argument].size] = true;
    return written;
}

std::uint32_t Flow::region_of(std::uint32_t frame, std::uint32_t variable) {
    if (frames_[frame].regions[variable] != no_region)
        return frames_[frame].regions[variable];
    const Function &function = *frames_[frame].function;
    const Variable &declared = function.variables[variable];
    std::uint32_t region;
    if (declared.storage == Storage::shared) {
        const auto key = std::make_pair(&function, variable);
        const auto found = shared_regions_.find(key);
        region = found != shared_regions_.end() ? found->second : regions_.add(Region::Kind::shared);
        shared_regions_[key] = region;
    } else if (declared.storage == Storage::local) {
        region = regions_.add(Region::Kind::local);
    } else if (declared.storage == Storage::argument && function.is_entry && frame == 0) {
        region = regions_.add(Region::Kind::entry_argument, static_cast<std::int64_t>(declared.offset),
                              static_cast<std::int64_t>(declared.size));
    } else {
        region = regions_.add(Region::Kind::argument);
    }
    return frames_[frame].regions[variable] = region;
}

std::uint32_t Flow::region_of_module(std::uint32_t variable) {
    const auto found = module_regions_.find(variable);
    if (found != module_regions_.end())
        return found->second;
    const bool is_shared = module_.variables[variable].storage == Storage::shared;
    if (is_shared && module_.variables[variable].size == 0) { // all arrays without a size begin at one address
        if (dynamic_shared_ == no_region)
            dynamic_shared_ = regions_.add(Region::Kind::shared);
        return module_regions_[variable] = dynamic_shared_;
    }
    return module_regions_[variable] = regions_.add(is_shared ? Region::Kind::shared : Region::Kind::module);
}

std::uint32_t Flow::heap() {
    if (heap_ == no_region)
        heap_ = regions_.add(Region::Kind::heap);
    return heap_;
}

bool Flow::run() {
    for (std::size_t round = 0; round < most_rounds; ++round) {
        changed_ = false;
        for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) {
            run_frame(frame);
            if (steps_ == 0 || values_.is_exhausted())
                return false;
        }
        if (!changed_)
            return !values_.is_exhausted();
    }
    return false;
}

void Flow::run_frame(std::uint32_t number) {
    const Function &function = *frames_[number].function;
    stored_.clear();
    for (std::uint32_t at = 0; at < function.instructions.size(); ++at) {
        const Instruction &instruction = function.instructions[at];
        if (instruction.is_label)
            stored_.clear();
        step(number, instruction, at);
        spend(1 + values_.take_work());
        if (steps_ == 0)
            return;
    }
}

Value Flow::value_of(std::uint32_t frame, const Operand &operand) {
    const Function &function = *frames_[frame].function;
    switch (operand.kind) {
    case Operand::Kind::number:
        return values_.number(operand.offset);
    case Operand::Kind::reg: {
        const Value value = frames_[frame].registers[operand.index].value();
        return operand.offset == 0 ? value : values_.sum(value, values_.number(operand.offset));
    }
    case Operand::Kind::variable:
        return values_.of({Origin::Kind::region, region_of(frame, operand.index), 0}, operand.offset);
    case Operand::Kind::module_variable:
        return values_.of({Origin::Kind::region, region_of_module(operand.index), 0}, operand.offset);
    case Operand::Kind::name:
        return starts_with(function.names[operand.index], "%envreg") ? values_.part(values_.system()) : Values::plain;
    case Operand::Kind::vector: {
        Value value = Values::plain;
        for (std::uint32_t element = 0; element < operand.count; ++element) {
            const Operand &part = function.elements[operand.index + element];
            const Value held = part.kind == Operand::Kind::vector ? Values::plain : value_of(frame, part);
            if (held != value) // both halves of one value are the value
                value = values_.sum(value, held);
        }
        return values_.whole(value);
    }
    case Operand::Kind::none:
        break;
    }
    return Values::plain;
}

void Flow::set(std::uint32_t frame, const Operand &operand, Value value) {
    if (operand.kind != Operand::Kind::reg)
        return;
    changed_ = frames_[frame].registers[operand.index].add(values_, value) || changed_;
}

// Gives all results the same value; elements of a vector get a part of the value.
void Flow::set_all(std::uint32_t frame, const Instruction &instruction, Value value) {
    const Function &function = *frames_[frame].function;
    for (std::uint32_t at = 0; at < instruction.results; ++at) {
        const Operand &operand = function.operands[instruction.first + at];
        if (operand.kind != Operand::Kind::vector) {
            set(frame, operand, value);
            continue;
        }
        for (std::uint32_t element = 0; element < operand.count; ++element)
            set(frame, function.elements[operand.index + element], values_.part(value));
    }
}

// Bits of both operands. Where both have a pointer, the result may be either.
Value Flow::blended(Value first, Value second) {
    const auto has_whole = [&](Value value) {
        const auto &sums = values_.sums(value);
        return std::any_of(sums.begin(), sums.end(), [](const Sum &sum) {
            return std::any_of(sum.terms.begin(), sum.terms.end(), [](const Term &term) { return !term.is_derived; });
        });
    };
    const Value sum = values_.sum(first, second);
    return sum != Values::none && has_whole(first) && has_whole(second) ? values_.choices(sum) : sum;
}

// A pointer with some of its lowest bits cleared is the pointer. Other masks leave no pointer.
Value Flow::masked(Value value, Value mask) {
    std::int64_t number;
    if (values_.is_number(value, number))
        std::swap(value, mask);
    if (values_.is_number(mask, number)) {
        const bool keeps_pointers = number < 0 || number >= std::int64_t(1) << 32;
        return keeps_pointers ? values_.moved(value) : values_.derived(value);
    }
    return blended(values_.moved(value), values_.moved(mask));
}

const Operand *Flow::address_of(const Function &function, const Instruction &instruction, unsigned which) const {
    for (std::uint32_t at = 0; at < instruction.count; ++at) {
        const Operand &operand = function.operands[instruction.first + at];
        if (operand.is_address && which-- == 0)
            return &operand;
    }
    return nullptr;
}

void Flow::step(std::uint32_t frame, const Instruction &instruction, std::uint32_t number) {
    const Function &function = *frames_[frame].function;
    const Operation &operation = module_.operations[instruction.operation];
    const auto operand = [&](std::uint32_t at) {
        if (instruction.results + at >= instruction.count)
            return Values::plain;
        return value_of(frame, function.operands[instruction.first + instruction.results + at]);
    };
    switch (operation.act) {
    case Act::nothing:
    case Act::branch:
    case Act::map:
        return;
    case Act::reduce:
        return exchange(frame, instruction, operation);
    case Act::plain:
    case Act::opaque:
        return set_all(frame, instruction, Values::plain);
    case Act::move:
    case Act::prepare_global:
        return set_all(frame, instruction, operation.bytes < pointer_bytes ? values_.part(operand(0)) : operand(0));
    case Act::narrow:
        return set_all(frame, instruction, values_.part(operand(0)));
    case Act::sum:
        return set_all(frame, instruction, values_.sum(operand(0), operand(1)));
    case Act::blend:
        return set_all(frame, instruction, blended(operand(0), operand(1)));
    case Act::opposite:
        return set_all(frame, instruction, values_.difference(Values::plain, operand(0)));
    case Act::joint: {
        const Value first = operand(0), second = operand(1), value = blended(first, second);
        std::int64_t number;
        const bool has_parts = first != Values::plain && second != Values::plain && !values_.is_number(first, number) &&
                               !values_.is_number(second, number);
        return set_all(frame, instruction, has_parts ? values_.whole(value) : value);
    }
    case Act::difference:
        return set_all(frame, instruction, values_.difference(operand(0), operand(1)));
    case Act::multiply_add: {
        const Value product = values_.derived(values_.sum(operand(0), operand(1)));
        return set_all(frame, instruction, values_.sum(product, operand(2)));
    }
    case Act::mask:
        return set_all(frame, instruction, masked(operand(0), operand(1)));
    case Act::choice:
        return set_all(frame, instruction, values_.either(operand(0), operand(1)));
    case Act::mix: {
        Value value = Values::plain;
        for (std::uint32_t at = 0; at + instruction.results < instruction.count; ++at)
            value = values_.sum(value, operand(at));
        return set_all(frame, instruction, values_.derived(value));
    }
    case Act::allocate:
        return set_all(frame, instruction, values_.moved(values_.of({Origin::Kind::region, unknown_local_, 0})));
    case Act::load:
        return load(frame, instruction, operation);
    case Act::store:
        return store(frame, instruction, operation);
    case Act::exchange:
        return exchange(frame, instruction, operation);
    case Act::copy:
        // A table of pointers may be copied to shared memory.
        if (const Operand *to = address_of(function, instruction, 0))
            store(value_of(frame, *to), operation.memory[0].space, 0, 0, values_.foreign(), false);
        return;
    case Act::call:
        return call(frame, instruction, number);
    }
}

std::uint32_t Flow::region_at(const Sum &sum) const {
    std::uint32_t region = no_region;
    for (const Term &term : sum.terms) {
        const Origin &origin = values_.origin(term.origin);
        if (origin.kind != Origin::Kind::region || term.is_derived || term.is_negative)
            continue;
        if (region != no_region)
            return no_region;
        region = static_cast<std::uint32_t>(origin.offset);
    }
    return region;
}

bool Flow::is_in(Region::Kind kind, Space space) {
    switch (space) {
    case Space::generic:
        return true;
    case Space::global:
        return kind == Region::Kind::heap || kind == Region::Kind::module;
    case Space::constant:
        return kind == Region::Kind::module;
    case Space::shared:
        return kind == Region::Kind::shared;
    case Space::local:
        return kind == Region::Kind::local || kind == Region::Kind::argument; // arguments lie on the stack
    case Space::parameter:
        return kind == Region::Kind::argument || kind == Region::Kind::entry_argument;
    }
    return true;
}

Value Flow::loaded(Value address, Space space, std::int64_t offset, unsigned bytes) {
    if (address == Values::none)
        return Values::none;
    Value value = Values::none;
    const bool is_followed = space == Space::shared || space == Space::local || space == Space::parameter;
    for (const Sum &sum : values_.sums(address)) {
        const std::uint32_t region = region_at(sum);
        const std::int64_t place = moved(sum.number, offset);
        if (region != no_region && is_in(regions_[region].kind, space)) {
            if (sum.is_exact)
                for (const Stored &stored : stored_)
                    if (stored.region == region && stored.offset == place && stored.bytes == bytes &&
                        values_.sums(address).size() == 1)
                        return stored.value;
            value = values_.either(value, regions_.load(region, sum.is_exact, place, bytes));
            const bool is_shared = regions_[region].kind == Region::Kind::shared;
            if (const Value unknown = regions_[is_shared ? unknown_shared_ : unknown_local_].anywhere.value();
                unknown != Values::none && (is_shared || regions_[region].kind == Region::Kind::local))
                value = values_.either(value, bytes < pointer_bytes ? values_.part(unknown) : unknown);
        } else if (is_followed) { // some address of the space
            for (std::uint32_t other = 0; other < regions_.size(); ++other, spend(1))
                if (is_in(regions_[other].kind, space))
                    value = values_.either(value, regions_.load(other, false, 0, bytes));
        } else {
            value = values_.either(value, bytes < pointer_bytes ? values_.part(values_.foreign()) : values_.foreign());
        }
    }
    return value;
}

void Flow::load(std::uint32_t frame, const Instruction &instruction, const Operation &operation) {
    const Function &function = *frames_[frame].function;
    const Operand *address = address_of(function, instruction, 0);
    if (address == nullptr || instruction.results == 0)
        return set_all(frame, instruction, values_.foreign());
    const Value from = value_of(frame, *address);
    const Space space = operation.memory[0].space;
    const Operand &result = function.operands[instruction.first];
    if (result.kind != Operand::Kind::vector)
        return set(frame, result, loaded(from, space, 0, operation.bytes));
    for (std::uint32_t element = 0; element < result.count; ++element)
        set(frame, function.elements[result.index + element],
            loaded(from, space, std::int64_t(element) * operation.bytes, operation.bytes));
}

void Flow::store(Value address, Space space, std::int64_t offset, unsigned bytes, Value value, bool is_certain) {
    if (address == Values::none)
        return;
    const auto &sums = values_.sums(address);
    for (const Sum &sum : sums) {
        const std::uint32_t region = region_at(sum);
        const std::int64_t place = moved(sum.number, offset);
        if (region != no_region && is_in(regions_[region].kind, space)) {
            const bool is_exact = sum.is_exact && bytes != 0;
            if (regions_[region].kind == Region::Kind::local) {
                const auto overlaps = [&](const Stored &stored) {
                    return stored.region == region &&
                           (!is_exact || (stored.offset < place + bytes && place < stored.offset + stored.bytes));
                };
                stored_.erase(std::remove_if(stored_.begin(), stored_.end(), overlaps), stored_.end());
                if (is_exact && is_certain && sums.size() == 1 && stored_.size() < 64)
                    stored_.push_back({region, place, bytes, value});
            }
            changed_ = regions_.store(region, is_exact, place, bytes, value) || changed_;
        } else if (space == Space::shared || space == Space::local || region != no_region) {
            if (space != Space::shared)
                stored_.clear();
            const std::uint32_t unknown = space == Space::shared ? unknown_shared_ : unknown_local_;
            changed_ = regions_.store(unknown, false, 0, bytes, value) || changed_;
        }
    }
}

void Flow::store(std::uint32_t frame, const Instruction &instruction, const Operation &operation) {
    const Function &function = *frames_[frame].function;
    const Operand *address = address_of(function, instruction, 0);
    if (address == nullptr)
        return;
    const Value to = value_of(frame, *address);
    const Space space = operation.memory[0].space;
    const bool is_certain = !instruction.is_guarded;
    for (std::uint32_t at = 0; at < instruction.count; ++at) {
        const Operand &operand = function.operands[instruction.first + at];
        if (operand.is_address)
            continue;
        if (operand.kind != Operand::Kind::vector) {
            store(to, space, 0, operation.bytes, value_of(frame, operand), is_certain);
            continue;
        }
        for (std::uint32_t element = 0; element < operand.count; ++element) {
            const Operand &part = function.elements[operand.index + element];
            const std::int64_t offset = std::int64_t(element) * operation.bytes;
            if (part.kind != Operand::Kind::vector)
                store(to, space, offset, operation.bytes, value_of(frame, part), is_certain);
        }
    }
}

void Flow::exchange(std::uint32_t frame, const Instruction &instruction, const Operation &operation) {
    const Function &function = *frames_[frame].function;
    if (instruction.results != 0)
        load(frame, instruction, operation);
    const Operand *address = address_of(function, instruction, 0);
    if (address == nullptr)
        return;
    const Value to = value_of(frame, *address);
    for (std::uint32_t at = instruction.results; at < instruction.count; ++at)
        if (const Operand &operand = function.operands[instruction.first + at]; !operand.is_address)
            store(to, operation.memory[0].space, 0, operation.bytes, value_of(frame, operand), false);
}

std::uint32_t Flow::frame_of_call(std::uint32_t caller, std::uint32_t instruction, const Function &function) {
    const auto found = frames_[caller].calls.find(instruction);
    if (found != frames_[caller].calls.end())
        return found->second;
    std::uint32_t callee = 0;
    bool is_known = false;
    for (std::uint32_t above = caller; !is_known; above = frames_[above].caller) { // a recursive call
        if (frames_[above].function == &function) {
            callee = above;
            is_known = true;
        }
        if (above == 0)
            break;
    }
    if (!is_known && frames_.size() >= most_frames) {
        const auto shared = shared_frames_.find(&function);
        is_known = shared != shared_frames_.end();
        callee = is_known ? shared->second : 0;
    }
    if (!is_known) {
        callee = add_frame(function, frames_.size() >= most_frames ? 0 : caller);
        if (callee >= most_frames)
            shared_frames_[&function] = callee;
    }
    frames_[caller].calls[instruction] = callee;
    changed_ = true;
    return callee;
}

void Flow::call(std::uint32_t frame, const Instruction &instruction, std::uint32_t number) {
    const Function &function = *frames_[frame].function;
    stored_.clear(); // the function may have addresses of this function's variables
    if (instruction.is_direct) {
        const auto name = function.names[function.operands[instruction.first + instruction.results].index];
        const auto found = module_.functions_by_name.find(name);
        if (found != module_.functions_by_name.end() && module_.functions[found->second].has_body)
            return call_known(frame, instruction, frame_of_call(frame, number, module_.functions[found->second]));
        if (is_harmless(name))
            return;
        if (name == "malloc" && instruction.results == 1) {
            const Value address = values_.of({Origin::Kind::region, heap(), 0});
            const Operand &result = function.operands[instruction.first];
            set(frame, result, address);
            if (result.kind == Operand::Kind::variable)
                changed_ = regions_.store(region_of(frame, result.index), true, 0, pointer_bytes, address) || changed_;
            return;
        }
    }
    call_unknown(frame, instruction);
}

void Flow::call_known(std::uint32_t caller, const Instruction &instruction, std::uint32_t callee) {
    const Function &from = *frames_[caller].function, &to = *frames_[callee].function;
    const std::uint32_t first = instruction.results + 1;
    for (std::uint32_t at = first; at < instruction.count && at - first < to.arguments.size(); ++at) {
        const Operand &operand = from.operands[instruction.first + at];
        const Variable &argument = to.variables[to.arguments[at - first]];
        const bool is_variable = operand.kind == Operand::Kind::variable;
        if (argument.is_register) {
            Operand held;
            held.kind = Operand::Kind::reg;
            held.index = static_cast<std::uint32_t>(argument.size);
            set(callee, held,
                is_variable ? regions_.load(region_of(caller, operand.index), true, 0, pointer_bytes)
                            : value_of(caller, operand));
            continue;
        }
        const std::uint32_t region = region_of(callee, to.arguments[at - first]);
        if (is_variable)
            changed_ = regions_.copy(region_of(caller, operand.index), region) || changed_;
        else
            changed_ = regions_.store(region, true, 0, pointer_bytes, value_of(caller, operand)) || changed_;
    }
    for (std::uint32_t at = 0; at < instruction.results && at < to.results.size(); ++at) {
        const Operand &operand = from.operands[instruction.first + at];
        const Variable &result = to.variables[to.results[at]];
        const bool is_variable = operand.kind == Operand::Kind::variable;
        if (!result.is_register && is_variable) {
            changed_ = regions_.copy(region_of(callee, to.results[at]), region_of(caller, operand.index)) || changed_;
            continue;
        }
        const Value value = result.is_register
                                ? frames_[callee].registers[result.size].value()
                                : regions_.load(region_of(callee, to.results[at]), true, 0, pointer_bytes);
        if (is_variable)
            changed_ = regions_.store(region_of(caller, operand.index), true, 0, pointer_bytes, value) || changed_;
        else
            set(caller, operand, value);
    }
}

void Flow::call_unknown(std::uint32_t frame, const Instruction &instruction) {
    const Function &function = *frames_[frame].function;
    for (std::uint32_t at = 0; at < instruction.results; ++at) {
        const Operand &operand = function.operands[instruction.first + at];
        set(frame, operand, values_.foreign());
        if (operand.kind != Operand::Kind::variable)
            continue;
        const std::uint32_t region = region_of(frame, operand.index);
        changed_ = regions_.store(region, false, 0, pointer_bytes, values_.foreign()) || changed_;
    }
}

Effects Flow::effects() {
    Effects effects;
    for (std::uint32_t frame = 0; frame < frames_.size(); ++frame) {
        stored_.clear();
        for (const Instruction &instruction : frames_[frame].function->instructions)
            add_effects(frame, instruction, effects);
    }
    return effects;
}

void Flow::give(Value value, std::set<std::uint32_t> &seen, Effects &effects) {
    std::vector<Value> values(1, value);
    while (!values.empty()) {
        const Value given = values.back();
        values.pop_back();
        effects.given.push_back(given);
        for (const Sum &sum : values_.sums(given))
            for (const Term &term : sum.terms) {
                const Origin &origin = values_.origin(term.origin);
                if (origin.kind != Origin::Kind::region)
                    continue;
                const auto region = static_cast<std::uint32_t>(origin.offset);
                if (!seen.insert(region).second)
                    continue;
                if (regions_[region].kind == Region::Kind::entry_argument)
                    values.push_back(regions_.load(region, false, 0, pointer_bytes));
                else if (regions_[region].kind != Region::Kind::module)
                    values.push_back(regions_.content(region));
            }
    }
}

void Flow::add_effects(std::uint32_t frame, const Instruction &instruction, Effects &effects) {
    const Function &function = *frames_[frame].function;
    const Operation &operation = module_.operations[instruction.operation];
    const auto operand = [&](std::uint32_t at) -> const Operand & { return function.operands[instruction.first + at]; };
    if (operation.act == Act::call) {
        std::string_view name;
        if (instruction.is_direct)
            name = function.names[operand(instruction.results).index];
        const auto found = module_.functions_by_name.find(name);
        const bool is_known = found != module_.functions_by_name.end() && module_.functions[found->second].has_body;
        if (instruction.is_direct && (is_known || is_harmless(name) || name == "malloc"))
            return;
        effects.has_opaque = true;
        std::set<std::uint32_t> seen;
        for (std::uint32_t at = instruction.results; at < instruction.count; ++at)
            give(value_of(frame, operand(at)), seen, effects);
        return;
    }
    if (operation.act == Act::opaque)
        effects.has_opaque = true;
    if (operation.act == Act::prepare_global && instruction.results < instruction.count)
        effects.global.push_back(value_of(frame, operand(instruction.results)));
    if (operation.act == Act::map) {
        effects.has_opaque = true;
        for (unsigned which = 0; which < 4; ++which)
            if (const Operand *map = address_of(function, instruction, which))
                effects.maps.emplace_back(value_of(frame, *map), operation.memory[0].kind);
        return;
    }
    for (unsigned which = 0; which < 4; ++which) {
        const Operand *address = address_of(function, instruction, which);
        if (address == nullptr)
            break;
        auto memory = which < 2 ? operation.memory[which] : Operation::Memory();
        if (!operation.is_known) {
            effects.has_opaque = true;
            memory = {Space::generic, Kind::both};
        }
        if (memory.kind == Kind::none || (memory.space != Space::generic && memory.space != Space::global))
            continue;
        const Value to = value_of(frame, *address);
        effects.accesses.push_back({to, memory.space, memory.kind});
        if ((std::uint8_t(memory.kind) & std::uint8_t(Kind::write)) == 0)
            continue;
        bool is_stored = false, is_published = false;
        for (const Sum &sum : values_.sums(to)) {
            const std::uint32_t region = region_at(sum);
            is_stored = is_stored || region == no_region;
            is_published = is_published || (region != no_region && regions_[region].kind == Region::Kind::module);
        }
        for (std::uint32_t at = instruction.results; at < instruction.count; ++at) {
            if (operand(at).is_address)
                continue;
            if (is_stored)
                effects.stored.push_back(value_of(frame, operand(at)));
            if (is_published)
                effects.published.push_back(value_of(frame, operand(at)));
        }
    }
}

} // namespace tcuda::kernel_uses::ptx
