#include "sanitizer/_cpp/kernel_uses/ptx_operation.hpp"

#include <cstddef>

#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

// The parts of an opcode between its points.
class Parts {
public:
    explicit Parts(std::string_view opcode) {
        while (count_ < most && !opcode.empty()) {
            const auto point = opcode.find('.');
            parts_[count_++] = opcode.substr(0, point);
            opcode = point == opcode.npos ? std::string_view() : opcode.substr(point + 1);
        }
    }

    std::string_view operator[](std::size_t at) const { return at < count_ ? parts_[at] : std::string_view(); }
    std::size_t size() const { return count_; }
    std::string_view last() const { return count_ == 0 ? std::string_view() : parts_[count_ - 1]; }
    bool has(std::string_view word) const {
        for (std::size_t at = 1; at < count_; ++at)
            if (parts_[at] == word)
                return true;
        return false;
    }

private:
    static constexpr std::size_t most = 24;
    std::string_view parts_[most];
    std::size_t count_ = 0;
};

// The bytes of a type such as `u64`; 0 if the word is no type.
unsigned bytes_of(std::string_view type) {
    if (type.size() < 2 || std::string_view("busf").find(type[0]) == std::string_view::npos)
        return type == "pred" ? 1 : starts_with(type, "bf16") ? (type == "bf16x2" ? 4 : 2) : 0;
    const auto digits = type.substr(1);
    return digits == "8"                        ? 1
           : digits == "16"                     ? 2
           : digits == "32" || digits == "16x2" ? 4
           : digits == "64"                     ? 8
           : digits == "128"                    ? 16
                                                : 0;
}

bool is_float(std::string_view type) {
    return type == "f16" || type == "f16x2" || type == "f32" || type == "f32x2" || type == "f64" || type == "tf32" ||
           starts_with(type, "bf16") || starts_with(type, "e4m3") || starts_with(type, "e5m2") ||
           starts_with(type, "e2m") || starts_with(type, "e3m2") || starts_with(type, "ue8");
}

bool space_of(std::string_view part, Space &space) {
    if (part == "global")
        space = Space::global;
    else if (part == "shared" || part == "shared::cta" || part == "shared::cluster")
        space = Space::shared;
    else if (part == "local")
        space = Space::local;
    else if (part == "const")
        space = Space::constant;
    else if (part == "param" || part == "param::entry" || part == "param::func")
        space = Space::parameter;
    else
        return false;
    return true;
}

// The spaces that the opcode names, in their order.
unsigned spaces_of(const Parts &parts, Space spaces[2]) {
    unsigned count = 0;
    for (std::size_t at = 1; at < parts.size() && count < 2; ++at)
        count += space_of(parts[at], spaces[count]);
    return count;
}

Operation of_act(Act act) {
    Operation operation;
    operation.act = act;
    return operation;
}

Operation memory_of(const Parts &parts, Act act, Kind kind) {
    Operation operation;
    operation.act = act;
    Space spaces[2] = {Space::generic, Space::generic};
    spaces_of(parts, spaces);
    operation.memory[0] = {spaces[0], kind};
    operation.bytes = bytes_of(parts.last());
    if (operation.bytes == 0) // as in atom.cas.b64.relaxed, or a type of a matrix
        for (std::size_t at = 1; at < parts.size(); ++at)
            if (const unsigned bytes = bytes_of(parts[at]))
                operation.bytes = bytes;
    if (operation.bytes == 0)
        operation.bytes = 4;
    return operation;
}

Operation unknown_memory() {
    Operation operation = of_act(Act::mix);
    operation.is_known = false;
    return operation;
}

Operation copy_of(const Parts &parts) {
    const bool is_reduction = parts[0] == "cp" && parts[1] == "reduce";
    if (parts.has("commit_group") || parts.has("wait_group") || parts.has("wait_all") || parts.has("mbarrier") ||
        parts.has("bulk_group"))
        if (!parts.has("global"))
            return of_act(Act::nothing);
    if (parts.has("prefetch"))
        return of_act(Act::nothing);
    if (parts.has("tensor")) {
        Operation operation = of_act(Act::map);
        Space spaces[2] = {Space::generic, Space::generic};
        spaces_of(parts, spaces);
        operation.memory[0].kind = is_reduction ? Kind::both : spaces[0] == Space::global ? Kind::write : Kind::read;
        return operation;
    }
    Operation operation = of_act(Act::copy);
    Space spaces[2] = {Space::generic, Space::generic};
    if (spaces_of(parts, spaces) == 0)
        return parts.size() > 2 ? unknown_memory() : of_act(Act::nothing);
    operation.memory[0] = {spaces[0], is_reduction ? Kind::both : Kind::write};
    operation.memory[1] = {spaces[1], Kind::read};
    return operation;
}

Operation conversion_of(const Parts &parts) {
    const auto size = parts.size();
    const auto to = parts[size - 2], from = parts[size - 1];
    if (is_float(to) || is_float(from))
        return of_act(Act::no_pointers);
    return of_act(bytes_of(to) >= 8 || bytes_of(from) <= 4 ? Act::move : Act::narrow);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    for (const auto other : words)
        if (word == other)
            return true;
    return false;
}

} // namespace

Operation operation_of(std::string_view opcode) {
    const Parts parts(opcode);
    const auto name = parts[0];
    if (is_one_of(name, {"ld", "ldu"}))
        return memory_of(parts, Act::load, Kind::read);
    if (name == "st" && parts[1] == "bulk")
        return memory_of(parts, Act::store, Kind::write);
    if (name == "st")
        return memory_of(parts, Act::store, Kind::write);
    if (name == "atom")
        return memory_of(parts, Act::exchange, Kind::both);
    if (name == "red")
        return memory_of(parts, Act::reduce, Kind::both);
    if (name == "multimem")
        return parts[1] == "ld_reduce" ? memory_of(parts, Act::load, Kind::read)
               : parts[1] == "st"      ? memory_of(parts, Act::store, Kind::write)
               : parts[1] == "red"     ? memory_of(parts, Act::reduce, Kind::both)
                                       : unknown_memory();
    if (name == "cp")
        return copy_of(parts);
    if (name == "wmma" && parts[1] == "load")
        return memory_of(parts, Act::load, Kind::read);
    if (name == "wmma" && parts[1] == "store")
        return memory_of(parts, Act::store, Kind::write);
    if (name == "ldmatrix")
        return memory_of(parts, Act::load, Kind::read);
    if (name == "stmatrix")
        return memory_of(parts, Act::store, Kind::write);
    if (name == "discard")
        return memory_of(parts, Act::reduce, Kind::write);
    if (name == "tensormap") {
        if (parts[1] == "replace")
            return memory_of(parts, Act::reduce, Kind::both);
        return unknown_memory();
    }
    if (is_one_of(name, {"tex", "tld4", "suld", "sust", "sured"}))
        return of_act(Act::opaque);
    if (name == "call")
        return of_act(Act::call);
    if (is_one_of(name, {"bra", "brx"}))
        return of_act(Act::branch);
    if (is_one_of(name, {"ret",       "exit",        "trap",       "brkpt",     "bar",           "barrier",
                         "membar",    "fence",       "prefetch",   "prefetchu", "applypriority", "griddepcontrol",
                         "nanosleep", "pmevent",     "setmaxnreg", "wgmma",     "tcgen05",       "clusterlaunchcontrol",
                         "elect",     "stackrestore"})) {
        const bool has_results = name == "elect" || (name == "bar" && parts.has("red")) ||
                                 (name == "barrier" && parts.has("red")) || name == "tcgen05" || name == "wgmma";
        return of_act(has_results ? Act::no_pointers : Act::nothing);
    }
    if (is_one_of(name, {"setp", "set",   "testp",      "mbarrier",   "createpolicy", "isspacep", "istypep",
                         "vote", "match", "activemask", "getctarank", "stacksave",    "txq",      "suq",
                         "mma",  "wmma",  "fma",        "ex2",        "lg2",          "sin",      "cos",
                         "tanh", "rsqrt", "sqrt",       "rcp",        "copysign"}))
        return of_act(name == "fma" && !is_float(parts.last()) ? Act::mix : Act::no_pointers);
    if (name == "mov") {
        Operation operation = of_act(Act::move);
        operation.bytes = bytes_of(parts.last());
        return operation;
    }
    if (name == "mapa")
        return of_act(Act::choice);
    if (name == "cvta")
        return of_act(parts.has("global") ? Act::prepare_global : Act::move);
    if (name == "cvt")
        return parts.size() < 3 ? of_act(Act::mix) : conversion_of(parts);
    if (name == "shfl")
        return of_act(Act::narrow);
    if (name == "alloca")
        return of_act(Act::allocate);
    if (is_float(parts.last()) &&
        is_one_of(name, {"add", "sub", "mul", "mad", "min", "max", "neg", "abs", "div", "rem"}))
        return of_act(Act::no_pointers);
    if (name == "add" || name == "addc")
        return of_act(Act::sum);
    if (name == "xor")
        return of_act(Act::blend);
    if (name == "neg" || name == "not")
        return of_act(Act::opposite);
    if (name == "or" || name == "bfi")
        return of_act(Act::joint);
    if (name == "sub" || name == "subc")
        return of_act(Act::difference);
    if (is_one_of(name, {"mad", "madc", "mad24"}))
        return of_act(Act::multiply_add);
    if (name == "and")
        return of_act(Act::mask);
    if (is_one_of(name, {"selp", "min", "max", "slct"}))
        return of_act(Act::choice);
    if (is_one_of(name, {"shl",   "shr",   "mul",      "abs",   "div",  "rem",   "bfe",  "brev",  "cnot",
                         "shf",   "prmt",  "lop3",     "popc",  "clz",  "bfind", "fns",  "sad",   "mul24",
                         "dp4a",  "dp2a",  "redux",    "szext", "bmsk", "vadd",  "vsub", "vadd2", "vadd4",
                         "vsub2", "vsub4", "vabsdiff", "vmin",  "vmax", "vshl",  "vshr", "vmad",  "vset"}))
        return of_act(Act::mix);
    return unknown_memory();
}

} // namespace tcuda::kernel_uses::ptx
