#include "sanitizer/_cpp/kernel_uses/ptx_flow.hpp"

#include <algorithm>
#include <string_view>

#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

// Functions of the system that use no memory of a parameter.
bool is_harmless(std::string_view name) {
    return name == "vprintf" || name == "free" || name == "__assertfail" || name == "__assert_fail" ||
           name == "cudaGetLastError" || name == "__trap";
}

} // namespace

Flow::Flow(const Module &module, const Function &entry, std::size_t &steps)
    : module_(module), regions_(values_), memory_(values_, regions_, steps), frames_(module, entry, regions_),
      steps_(steps) {}

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
    memory_.forget_stored();
    for (std::uint32_t at = 0; at < function.instructions.size(); ++at) {
        const Instruction &instruction = function.instructions[at];
        if (instruction.is_label)
            memory_.forget_stored();
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
        return values_.of({Origin::Kind::region, frames_.region_of(frame, operand.index), 0}, operand.offset);
    case Operand::Kind::module_variable:
        return values_.of({Origin::Kind::region, frames_.region_of_module(operand.index), 0}, operand.offset);
    case Operand::Kind::name:
        return starts_with(function.names[operand.index], "%envreg") ? values_.part(values_.system())
                                                                     : Values::no_pointer;
    case Operand::Kind::vector: {
        Value value = Values::no_pointer;
        for (std::uint32_t element = 0; element < operand.count; ++element) {
            const Operand &part = function.elements[operand.index + element];
            const Value held = part.kind == Operand::Kind::vector ? Values::no_pointer : value_of(frame, part);
            if (held != value) // both halves of one value are the value
                value = values_.sum(value, held);
        }
        return values_.whole(value);
    }
    case Operand::Kind::none:
        break;
    }
    return Values::no_pointer;
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

void Flow::step(std::uint32_t frame, const Instruction &instruction, std::uint32_t number) {
    const Function &function = *frames_[frame].function;
    const Operation &operation = module_.operations[instruction.operation];
    const auto operand = [&](std::uint32_t at) {
        if (instruction.results + at >= instruction.count)
            return Values::no_pointer;
        return value_of(frame, function.operands[instruction.first + instruction.results + at]);
    };
    switch (operation.act) {
    case Act::nothing:
    case Act::branch:
    case Act::map:
        return;
    case Act::reduce:
        return exchange(frame, instruction, operation);
    case Act::no_pointers:
    case Act::opaque:
        return set_all(frame, instruction, Values::no_pointer);
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
        return set_all(frame, instruction, values_.difference(Values::no_pointer, operand(0)));
    case Act::joint: {
        const Value first = operand(0), second = operand(1), value = blended(first, second);
        std::int64_t number;
        const bool has_parts = first != Values::no_pointer && second != Values::no_pointer &&
                               !values_.is_number(first, number) && !values_.is_number(second, number);
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
        Value value = Values::no_pointer;
        for (std::uint32_t at = 0; at + instruction.results < instruction.count; ++at)
            value = values_.sum(value, operand(at));
        return set_all(frame, instruction, values_.derived(value));
    }
    case Act::allocate:
        return set_all(frame, instruction,
                       values_.moved(values_.of({Origin::Kind::region, memory_.unknown_local(), 0})));
    case Act::load:
        return load(frame, instruction, operation);
    case Act::store:
        return store(frame, instruction, operation);
    case Act::exchange:
        return exchange(frame, instruction, operation);
    case Act::copy:
        // A table of pointers may be copied to shared memory.
        if (const Operand *to = address_of(function, instruction, 0))
            store_at(value_of(frame, *to), operation.memory[0].space, 0, 0, values_.foreign(), false);
        return;
    case Act::call:
        return call(frame, instruction, number);
    }
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
        return set(frame, result, memory_.load(from, space, 0, operation.bytes));
    for (std::uint32_t element = 0; element < result.count; ++element)
        set(frame, function.elements[result.index + element],
            memory_.load(from, space, std::int64_t(element) * operation.bytes, operation.bytes));
}

void Flow::store_at(Value address, Space space, std::int64_t offset, unsigned bytes, Value value, bool is_certain) {
    changed_ = memory_.store(address, space, offset, bytes, value, is_certain) || changed_;
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
            store_at(to, space, 0, operation.bytes, value_of(frame, operand), is_certain);
            continue;
        }
        for (std::uint32_t element = 0; element < operand.count; ++element) {
            const Operand &part = function.elements[operand.index + element];
            const std::int64_t offset = std::int64_t(element) * operation.bytes;
            if (part.kind != Operand::Kind::vector)
                store_at(to, space, offset, operation.bytes, value_of(frame, part), is_certain);
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
            store_at(to, operation.memory[0].space, 0, operation.bytes, value_of(frame, operand), false);
}

std::string_view Flow::name_of_callee(const Function &function, const Instruction &instruction) {
    return function.names[function.operands[instruction.first + instruction.results].index];
}

const Function *Flow::body_of(std::string_view name) const {
    const auto found = module_.functions_by_name.find(name);
    if (found == module_.functions_by_name.end() || !module_.functions[found->second].has_body)
        return nullptr;
    return &module_.functions[found->second];
}

bool Flow::knows_callee(const Function &function, const Instruction &instruction) const {
    if (!instruction.is_direct)
        return false;
    const auto name = name_of_callee(function, instruction);
    return body_of(name) != nullptr || is_harmless(name) || name == "malloc";
}

void Flow::call(std::uint32_t frame, const Instruction &instruction, std::uint32_t number) {
    const Function &function = *frames_[frame].function;
    memory_.forget_stored(); // the function may have addresses of this function's variables
    if (instruction.is_direct) {
        const auto name = name_of_callee(function, instruction);
        if (const Function *callee = body_of(name)) {
            const auto [called, is_new] = frames_.of_call(frame, number, *callee);
            changed_ = is_new || changed_;
            return call_known(frame, instruction, called);
        }
        if (is_harmless(name))
            return;
        if (name == "malloc" && instruction.results == 1) {
            const Value address = values_.of({Origin::Kind::region, frames_.heap(), 0});
            const Operand &result = function.operands[instruction.first];
            set(frame, result, address);
            if (result.kind == Operand::Kind::variable)
                store_pointer(frames_.region_of(frame, result.index), address);
            return;
        }
    }
    call_unknown(frame, instruction);
}

void Flow::store_pointer(std::uint32_t region, Value value) {
    changed_ = regions_.store(region, true, 0, pointer_bytes, value) || changed_;
}

void Flow::copy_region(std::uint32_t from, std::uint32_t to) { changed_ = regions_.copy(from, to) || changed_; }

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
                is_variable ? regions_.load(frames_.region_of(caller, operand.index), true, 0, pointer_bytes)
                            : value_of(caller, operand));
            continue;
        }
        const std::uint32_t region = frames_.region_of(callee, to.arguments[at - first]);
        if (is_variable)
            copy_region(frames_.region_of(caller, operand.index), region);
        else
            store_pointer(region, value_of(caller, operand));
    }
    for (std::uint32_t at = 0; at < instruction.results && at < to.results.size(); ++at) {
        const Operand &operand = from.operands[instruction.first + at];
        const Variable &result = to.variables[to.results[at]];
        const bool is_variable = operand.kind == Operand::Kind::variable;
        if (!result.is_register && is_variable) {
            copy_region(frames_.region_of(callee, to.results[at]), frames_.region_of(caller, operand.index));
            continue;
        }
        const Value value = result.is_register
                                ? frames_[callee].registers[result.size].value()
                                : regions_.load(frames_.region_of(callee, to.results[at]), true, 0, pointer_bytes);
        if (is_variable)
            store_pointer(frames_.region_of(caller, operand.index), value);
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
        const std::uint32_t region = frames_.region_of(frame, operand.index);
        changed_ = regions_.store(region, false, 0, pointer_bytes, values_.foreign()) || changed_;
    }
}

} // namespace tcuda::kernel_uses::ptx
