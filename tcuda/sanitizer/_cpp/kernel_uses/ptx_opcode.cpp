#include "sanitizer/_cpp/kernel_uses/ptx_opcode.hpp"

#include <cstddef>
#include <utility>

#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

// An integer type, or a type that is only moved.
struct Type {
    char kind = 0; // s, u, b, or p for a predicate; 0 if the word is no such type
    std::uint8_t bits = 0;
};

Type type_of(std::string_view word) {
    constexpr std::pair<std::string_view, Type> types[] = {
        {"s8", {'s', 8}},   {"u8", {'u', 8}},   {"b8", {'b', 8}},   {"s16", {'s', 16}},
        {"u16", {'u', 16}}, {"b16", {'b', 16}}, {"s32", {'s', 32}}, {"u32", {'u', 32}},
        {"b32", {'b', 32}}, {"s64", {'s', 64}}, {"u64", {'u', 64}}, {"b64", {'b', 64}},
        {"pred", {'p', 1}}, {"f16", {'f', 16}}, {"f32", {'f', 32}}, {"f64", {'f', 64}}};
    for (const auto &[name, type] : types)
        if (name == word)
            return type;
    return {};
}

// Takes the words of an opcode from its end.
class Words {
public:
    explicit Words(std::string_view opcode) : rest_(opcode) {
        name_ = rest_.substr(0, rest_.find('.'));
        rest_.remove_prefix(name_.size());
    }

    std::string_view name() const { return name_; }
    bool empty() const { return rest_.empty(); }
    std::string_view take_last() {
        const auto point = rest_.rfind('.');
        const auto word = point == rest_.npos ? std::string_view() : rest_.substr(point + 1);
        rest_ = rest_.substr(0, point == rest_.npos ? 0 : point);
        return word;
    }
    bool take_last(std::string_view word) {
        const auto point = rest_.rfind('.');
        if (point == rest_.npos || rest_.substr(point + 1) != word)
            return false;
        rest_ = rest_.substr(0, point);
        return true;
    }

private:
    std::string_view name_, rest_;
};

bool has_word(std::string_view opcode, std::string_view word) {
    for (std::size_t at = opcode.find('.'); at != opcode.npos;) {
        const std::size_t next = opcode.find('.', at + 1);
        if (opcode.substr(at + 1, next == opcode.npos ? next : next - at - 1) == word)
            return true;
        at = next;
    }
    return false;
}

bool is_integer(Type type) { return type.kind == 's' || type.kind == 'u' || type.kind == 'b'; }

Step with(Action action) {
    Step step;
    step.action = action;
    return step;
}

Step with(Action action, Type type) {
    Step step = with(action);
    step.bits = type.bits;
    step.is_signed = type.kind == 's';
    return step;
}

Step forget() { return Step(); }

// The step of an opcode that has only a name and a type.
Step plain(Words words, Action action, bool allows_predicates = false) {
    const Type type = type_of(words.take_last());
    const bool fits = is_integer(type) || (allows_predicates && type.kind == 'p');
    return fits && words.empty() ? with(action, type) : forget();
}

Step product_of(Words words, bool adds) {
    const Type type = type_of(words.take_last());
    if (!is_integer(type))
        return forget();
    Action action;
    if (words.take_last("lo"))
        action = Action::multiply;
    else if (words.take_last("hi"))
        action = Action::multiply_high;
    else if (words.take_last("wide"))
        action = Action::multiply_wide;
    else
        return forget();
    if (!words.empty())
        return forget();
    Step step = with(action, type);
    step.adds = adds;
    return step;
}

Step comparison_of(Words words) {
    const Type type = type_of(words.take_last());
    if (!is_integer(type))
        return forget();
    Step step = with(Action::compare, type);
    if (words.take_last("and"))
        step.joint = Joint::conjunction;
    else if (words.take_last("or"))
        step.joint = Joint::disjunction;
    else if (words.take_last("xor"))
        step.joint = Joint::exclusive;
    constexpr std::pair<std::string_view, Relation> relations[] = {
        {"eq", Relation::equal},   {"ne", Relation::unequal},
        {"lt", Relation::less},    {"le", Relation::less_or_equal},
        {"gt", Relation::greater}, {"ge", Relation::greater_or_equal},
        {"lo", Relation::less},    {"ls", Relation::less_or_equal},
        {"hi", Relation::greater}, {"hs", Relation::greater_or_equal}};
    const auto word = words.take_last();
    for (const auto &[name, relation] : relations)
        if (name == word && words.empty()) {
            step.relation = relation;
            return step;
        }
    return forget();
}

Step conversion_of(Words words) {
    const Type from = type_of(words.take_last()), to = type_of(words.take_last());
    if (!is_integer(from) || !is_integer(to) || !words.empty()) // also `sat`
        return forget();
    Step step = with(Action::convert, to);
    step.from_bits = from.bits;
    step.from_signed = from.kind == 's';
    return step;
}

Step move_of(Words words) {
    Type type = type_of(words.take_last());
    if (type.bits == 0 || !words.empty())
        return forget();
    return with(Action::move, type);
}

Storing storing_of(Space space) {
    return space == Space::generic                              ? Storing::generic
           : space == Space::global                             ? Storing::global
           : space == Space::parameter || space == Space::local ? Storing::own
                                                                : Storing::elsewhere;
}

Step memory_of(Action action, std::string_view opcode, const Operation &operation, unsigned which) {
    Step step = with(action);
    step.bytes = static_cast<std::uint8_t>(operation.bytes);
    step.storing = storing_of(operation.memory[which].space);
    step.is_strong = is_strong(opcode);
    return step;
}

// A step that uses memory in a way that a walk does not follow.
Step unfollowed(const Operation &operation) {
    Step step;
    for (const auto &memory : operation.memory)
        if (memory.kind != Kind::none && storing_of(memory.space) != Storing::elsewhere &&
            storing_of(memory.space) != Storing::own) {
            step.action = Action::load; // from an unknown address
            step.storing = Storing::generic;
            step.is_strong = true;
        }
    return step;
}

} // namespace

bool is_strong(std::string_view opcode) {
    const Words words(opcode);
    if (words.name() == "atom" || words.name() == "red")
        return true;
    if (words.name() != "ld" && words.name() != "st" && words.name() != "ldu")
        return false;
    for (const auto word : {"volatile", "relaxed", "acquire", "release", "mmio", "cv", "wt"})
        if (has_word(opcode, word))
            return true;
    // A loop may wait for memory that the first cache does not keep.
    return words.name() == "ld" && has_word(opcode, "cg");
}

Step step_of(std::string_view opcode, const Operation &operation) {
    Words words(opcode);
    const auto name = words.name();
    if (!operation.is_known || operation.act == Act::map || operation.act == Act::opaque)
        return with(Action::lose);
    if (name == "exit" || name == "ret" || name == "trap")
        return with(name == "trap" ? Action::lose : Action::leave);
    switch (operation.act) {
    case Act::branch:
        return with(Action::branch);
    case Act::load:
        return name == "ld" || name == "ldu" ? memory_of(Action::load, opcode, operation, 0) : unfollowed(operation);
    case Act::store:
        return name == "st" && !has_word(opcode, "bulk") && !has_word(opcode, "async")
                   ? memory_of(Action::store, opcode, operation, 0)
                   : unfollowed(operation);
    case Act::exchange:
    case Act::reduce:
        if (name != "atom" && name != "red")
            return unfollowed(operation);
        return memory_of(has_word(opcode, "cas") ? Action::test : Action::update, opcode, operation, 0);
    case Act::copy: {
        if (!starts_with(opcode, "cp.async.ca.") && !starts_with(opcode, "cp.async.cg."))
            return unfollowed(operation);
        Step step = memory_of(Action::copy, opcode, operation, 1);
        step.is_strong = false;
        return step;
    }
    case Act::nothing:
        return with(Action::nothing);
    default:
        break;
    }
    if (name == "mov")
        return move_of(words);
    if (name == "cvta") {
        const Type type = type_of(words.take_last());
        return is_integer(type) && !has_word(opcode, "shared") && !has_word(opcode, "shared::cta") &&
                       !has_word(opcode, "shared::cluster") && !has_word(opcode, "const")
                   ? with(Action::move, type)
                   : forget();
    }
    if (name == "add")
        return plain(words, Action::add);
    if (name == "sub")
        return plain(words, Action::subtract);
    if (name == "mul" || name == "mad")
        return product_of(words, name == "mad");
    if (name == "div")
        return plain(words, Action::divide);
    if (name == "rem")
        return plain(words, Action::remainder);
    if (name == "min")
        return plain(words, Action::least);
    if (name == "max")
        return plain(words, Action::most);
    if (name == "abs")
        return plain(words, Action::absolute);
    if (name == "neg")
        return plain(words, Action::opposite);
    if (name == "not")
        return plain(words, Action::complement, true);
    if (name == "and")
        return plain(words, Action::conjunction, true);
    if (name == "or")
        return plain(words, Action::disjunction, true);
    if (name == "xor")
        return plain(words, Action::exclusive, true);
    if (name == "shl")
        return plain(words, Action::shift_left);
    if (name == "shr")
        return plain(words, Action::shift_right);
    if (name == "setp")
        return comparison_of(words);
    if (name == "selp") {
        const Type type = type_of(words.take_last());
        return type.bits != 0 && words.empty() ? with(Action::choose, type) : forget();
    }
    if (name == "cvt")
        return conversion_of(words);
    if (name == "bfe")
        return plain(words, Action::extract);
    if (name == "lop3")
        return plain(words, Action::combine);
    return forget();
}

} // namespace tcuda::kernel_uses::ptx
