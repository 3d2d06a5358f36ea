#include "sanitizer/_cpp/kernel_uses/walk.hpp"

#include <algorithm>
#include <cstring>

namespace tcuda::kernel_uses {
namespace {

using Number = std::uint64_t;
using Signed = std::int64_t;

Number cut(Number number, unsigned bits) { return bits >= 64 ? number : number & ((Number(1) << bits) - 1); }

Signed extended(Number number, unsigned bits) {
    if (bits >= 64)
        return static_cast<Signed>(number);
    const Number sign = Number(1) << (bits - 1);
    return static_cast<Signed>((cut(number, bits) ^ sign) - sign);
}

// A number of a type, as wide as a product of two such numbers.
__int128 wide(Number number, const Step &step) {
    return step.is_signed ? static_cast<__int128>(extended(number, step.bits))
                          : static_cast<__int128>(cut(number, step.bits));
}

bool is_related(Number left, Number right, const Step &step) {
    const __int128 a = wide(left, step), b = wide(right, step);
    switch (step.relation) {
    case Relation::equal:
        return a == b;
    case Relation::unequal:
        return a != b;
    case Relation::less:
        return a < b;
    case Relation::less_or_equal:
        return a <= b;
    case Relation::greater:
        return a > b;
    default:
        return a >= b;
    }
}

bool is_of_memory(const Step &step) {
    switch (step.action) {
    case Action::load:
    case Action::store:
    case Action::update:
    case Action::test:
    case Action::copy:
        return step.storing == Storing::generic || step.storing == Storing::global;
    default:
        return step.action == Action::call;
    }
}

bool is_write(const Step &step) {
    return step.action == Action::store || step.action == Action::update || step.action == Action::test;
}

} // namespace

Walk::Walk(const Program &program, const LaunchSizes &sizes, const unsigned char *parameters)
    : program_(program), sizes_(sizes), parameters_(parameters), registers_(program.registers) {}

Walk::Value Walk::value_of(const Source &source) const {
    Value value;
    switch (source.kind) {
    case Source::Kind::unknown:
        return value;
    case Source::Kind::number:
        value = {static_cast<Number>(source.number), true};
        break;
    case Source::Kind::reg:
        value = registers_[source.index];
        value.number += static_cast<Number>(source.number);
        break;
    case Source::Kind::thread_index:
        value = {thread_[source.index], true};
        break;
    case Source::Kind::block_size:
        value = {sizes_.block[source.index], true};
        break;
    case Source::Kind::block_index:
        value = {block_[source.index], true};
        break;
    case Source::Kind::grid_size:
        value = {sizes_.grid[source.index], true};
        break;
    case Source::Kind::lane:
        value = {(thread_[0] + Number(sizes_.block[0]) * (thread_[1] + Number(sizes_.block[1]) * thread_[2])) % 32,
                 true};
        break;
    }
    if (source.negated)
        value.number = value.number == 0;
    return value;
}

void Walk::set(const Step &step, std::uint32_t place, Value value) {
    if (place >= step.results)
        return;
    const std::uint32_t number = program_.results[step.first_result + place];
    if (number != Step::none)
        registers_[number] = value;
}

void Walk::forget_results(const Step &step) {
    for (std::uint32_t place = 0; place < step.results; ++place)
        set(step, place, {});
}

Walk::Value Walk::compared(const Step &step) const {
    const Value left = source(step, 0), right = source(step, 1);
    Value made{is_related(left.number, right.number, step), left.known && right.known};
    if (step.joint == Joint::none)
        return made;
    const Value third = source(step, 2);
    if (step.joint == Joint::conjunction)
        return {made.number & third.number,
                (made.known && third.known) || (made.known && made.number == 0) || (third.known && third.number == 0)};
    if (step.joint == Joint::disjunction)
        return {made.number | third.number,
                (made.known && third.known) || (made.known && made.number != 0) || (third.known && third.number != 0)};
    return {made.number ^ third.number, made.known && third.known};
}

Walk::Value Walk::computed(const Step &step) const {
    const unsigned bits = step.bits;
    const Value a = source(step, 0), b = step.sources > 1 ? source(step, 1) : Value{0, true};
    // A zero decides a conjunction, and a true predicate decides a disjunction, also beside an unknown number.
    if (step.action == Action::conjunction && ((a.known && a.number == 0) || (b.known && b.number == 0)))
        return {0, true};
    if (step.action == Action::disjunction && bits == 1 && ((a.known && a.number != 0) || (b.known && b.number != 0)))
        return {1, true};
    if (step.action == Action::choose) {
        const Value which = source(step, 2);
        return which.known
                   ? Value{cut(which.number != 0 ? a.number : b.number, bits), which.number != 0 ? a.known : b.known}
                   : Value{};
    }
    if (!a.known || !b.known)
        return {};
    const Number x = cut(a.number, bits), y = cut(b.number, bits);
    const auto made = [bits](Number number) { return Value{cut(number, bits), true}; };
    const auto product = [&](unsigned shift, unsigned to) -> Value {
        Number number = step.is_signed ? static_cast<Number>((wide(x, step) * wide(y, step)) >> shift)
                                       : static_cast<Number>((static_cast<unsigned __int128>(x) * y) >> shift);
        if (step.adds) {
            const Value added = source(step, 2);
            if (!added.known)
                return {};
            number += added.number;
        }
        return {cut(number, to), true};
    };
    switch (step.action) {
    case Action::move:
        return made(x);
    case Action::add:
        return made(x + y);
    case Action::subtract:
        return made(x - y);
    case Action::multiply:
        return product(0, bits);
    case Action::multiply_high:
        return product(bits, bits);
    case Action::multiply_wide:
        return product(0, 2 * bits);
    case Action::divide:
        return y == 0 ? Value{} : made(static_cast<Number>(wide(x, step) / wide(y, step)));
    case Action::remainder:
        return y == 0 ? Value{} : made(static_cast<Number>(wide(x, step) % wide(y, step)));
    case Action::least:
        return made(wide(x, step) < wide(y, step) ? x : y);
    case Action::most:
        return made(wide(x, step) > wide(y, step) ? x : y);
    case Action::absolute:
        return made(wide(x, step) < 0 ? 0 - x : x);
    case Action::opposite:
        return made(0 - x);
    case Action::complement:
        return made(~x);
    case Action::conjunction:
        return made(x & y);
    case Action::disjunction:
        return made(x | y);
    case Action::exclusive:
        return made(x ^ y);
    case Action::shift_left: {
        const Number by = cut(b.number, 32);
        return made(by >= bits ? 0 : x << by);
    }
    case Action::shift_right: {
        const Number by = std::min<Number>(cut(b.number, 32), bits);
        if (step.is_signed)
            return made(static_cast<Number>(extended(x, bits) >> std::min<Number>(by, 63)));
        return made(by >= bits ? 0 : x >> by);
    }
    case Action::convert:
        return made(step.from_signed ? static_cast<Number>(extended(a.number, step.from_bits))
                                     : cut(a.number, step.from_bits));
    case Action::extract: {
        const Value length = source(step, 2);
        if (!length.known || step.is_signed)
            return {};
        const Number from = b.number & 255, count = length.number & 255;
        return made(from >= bits ? 0 : cut(x >> from, static_cast<unsigned>(std::min<Number>(count, 64))));
    }
    case Action::combine: {
        const Value third = source(step, 2), table = source(step, 3);
        if (!third.known || !table.known)
            return {};
        Number number = 0;
        for (unsigned row = 0; row < 8; ++row)
            if ((table.number >> row & 1) != 0)
                number |= ((row & 4) != 0 ? x : ~x) & ((row & 2) != 0 ? y : ~y) &
                          ((row & 1) != 0 ? third.number : ~third.number);
        return made(number);
    }
    default:
        return {};
    }
}

// A number from parts, or parts from a number.
void Walk::repack(const Step &step) {
    if (step.results == 1) {
        const unsigned bits = step.bits / step.sources;
        Value made{0, true};
        for (std::uint32_t place = 0; place < step.sources; ++place) {
            const Value part = source(step, place);
            made.known = made.known && part.known;
            made.number |= cut(part.number, bits) << (bits * place);
        }
        return set(step, 0, made);
    }
    const Value whole = source(step, 0);
    const unsigned bits = step.bits / step.results;
    for (std::uint32_t place = 0; place < step.results; ++place)
        set(step, place, {cut(whole.number >> (bits * place), bits), whole.known});
}

Walk::Value Walk::loaded(std::uint64_t address, unsigned bytes) const {
    Value value{0, bytes <= 8};
    for (unsigned place = 0; place < bytes && value.known; ++place) {
        unsigned char byte = 0;
        if (address >= variable_base) {
            const auto known = variables_.find(address + place);
            if (known == variables_.end())
                return {};
            byte = known->second;
        } else if (address - parameter_base + place < program_.parameter_bytes) {
            byte = parameters_[address - parameter_base + place];
        } else {
            return {};
        }
        value.number |= Number(byte) << (8 * place);
    }
    return value;
}

// The parameters, and the variables of the thread.
void Walk::use_variables(const Step &step, std::uint64_t address) {
    if (step.action == Action::load) {
        for (std::uint32_t place = 0; place < step.results; ++place)
            set(step, place, loaded(address + place * step.bytes, step.bytes));
        return;
    }
    forget_results(step);
    if (step.action != Action::store)
        return variables_.clear();
    for (std::uint32_t place = 0; place < step.elements; ++place) {
        const Value value = source(step, place);
        for (unsigned byte = 0; byte < step.bytes; ++byte) {
            const std::uint64_t at = address + place * step.bytes + byte;
            if (value.known && byte < 8)
                variables_[at] = static_cast<unsigned char>(value.number >> (8 * byte));
            else
                variables_.erase(at);
        }
    }
}

// The thread may do the step or leave the step out.
void Walk::doubt(const Step &step) {
    forget_results(step);
    is_whole_ = is_whole_ && !is_of_memory(step);
    const bool may_change_variables = step.storing == Storing::generic || step.storing == Storing::own;
    if (step.action == Action::call || (is_write(step) && may_change_variables))
        variables_.clear();
}

void Walk::use_memory(const Step &step, std::vector<Touch> &touches) {
    if (step.storing == Storing::elsewhere)
        return forget_results(step);
    const Value address = value_of(step.address);
    if (!address.known)
        return doubt(step);
    if (step.storing != Storing::global && address.number >= parameter_base)
        return use_variables(step, address.number);
    forget_results(step);
    // A thread of another kernel may wait for a volatile store of this thread, and this thread may wait for a volatile
    // store of another kernel. The order of such kernels is not known here.
    const bool is_update = step.action == Action::update || step.action == Action::test;
    if (step.storing == Storing::own || address.number >= parameter_base || (step.is_strong && !is_update)) {
        is_whole_ = false;
        return;
    }
    std::uint32_t bytes = std::uint32_t(step.bytes) * step.elements;
    Kind kind = step.action == Action::store ? Kind::write : Kind::read;
    if (step.action == Action::update) {
        bytes = step.bytes;
        kind = Kind::both;
    } else if (step.action == Action::test) {
        bytes = step.bytes;
        is_whole_ = false;
    } else if (step.action == Action::copy) {
        const Value size = source(step, 0);
        if (!size.known || size.number > 16)
            return doubt(step);
        bytes = static_cast<std::uint32_t>(size.number);
    }
    touches.push_back({address.number, bytes, kind});
}

std::uint32_t Walk::pass(std::uint32_t block) {
    const auto end = static_cast<std::uint32_t>(program_.blocks.size());
    const std::uint32_t join = program_.blocks[block].joins;
    if (join >= end) // also for no place at all
        return Step::none;
    in_region_.assign(end, false);
    region_.clear();
    bool has_loop = false, has_strong = false;
    const auto enter = [&](std::uint32_t number) {
        for (const auto next : program_.blocks[number].next) {
            has_loop = has_loop || next <= number;
            if (next >= end || next == join || in_region_[next])
                continue;
            in_region_[next] = true;
            region_.push_back(next);
        }
    };
    enter(block);
    for (std::size_t place = 0; place < region_.size(); ++place)
        enter(region_[place]);
    for (const auto number : region_)
        for (std::uint32_t at = program_.blocks[number].begin; at < program_.blocks[number].end; ++at) {
            has_strong = has_strong || program_.steps[at].is_strong;
            doubt(program_.steps[at]);
        }
    // The loop may wait for another kernel, which then comes before the rest of the thread.
    if (has_loop && has_strong)
        return Step::none;
    return program_.blocks[join].begin;
}

bool Walk::follow(const Index &block, const Index &thread, std::size_t &steps, std::vector<Touch> &touches) {
    block_ = block;
    thread_ = thread;
    is_whole_ = true;
    variables_.clear();
    std::fill(registers_.begin(), registers_.end(), Value{});
    const auto size = static_cast<std::uint32_t>(program_.steps.size());
    std::uint32_t place = 0;
    while (place < size) {
        if (steps == 0)
            return false;
        --steps;
        const Step &step = program_.steps[place];
        if (step.is_guarded) {
            const Value guard = value_of(step.guard);
            if (!guard.known && step.ends_block()) {
                place = pass(program_.block_of[place]);
                if (place == Step::none)
                    return false;
                continue;
            }
            if (!guard.known)
                doubt(step);
            if (!guard.known || guard.number == 0) {
                ++place;
                continue;
            }
        }
        switch (step.action) {
        case Action::nothing:
            break;
        case Action::forget:
            forget_results(step);
            break;
        case Action::pack:
            repack(step);
            break;
        case Action::compare: {
            const Value made = compared(step);
            set(step, 0, made);
            set(step, 1, {made.number == 0, made.known && step.joint == Joint::none});
            break;
        }
        case Action::load:
        case Action::store:
        case Action::update:
        case Action::test:
        case Action::copy:
            use_memory(step, touches);
            break;
        case Action::call:
            doubt(step);
            break;
        case Action::branch:
            if (step.target == Step::none)
                return false;
            place = step.target;
            continue;
        case Action::leave:
            return is_whole_;
        case Action::lose:
            return false;
        default:
            set(step, 0, computed(step));
        }
        ++place;
    }
    return is_whole_;
}

} // namespace tcuda::kernel_uses
