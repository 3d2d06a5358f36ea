#include "kernel_uses/sass_flow.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "kernel_uses/sass_memory.hpp"
#include "kernel_uses/sass_parameters.hpp"
#include "kernel_uses/sass_state.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t most_blocks = 1 << 14, most_calls = 256, deepest_call = 24;
constexpr std::size_t most_values = 1 << 22; // in the states of all basic blocks
constexpr std::size_t most_steps = 1 << 22;  // instructions of a kernel that are followed
constexpr std::size_t most_steps_in_all = 1 << 26;
constexpr std::size_t barriers = 16;
constexpr std::size_t nowhere = std::size_t(-1);

// A kernel that cannot be followed: a large one, or one with a branch to anywhere.
struct CannotFollow {};

using Names = std::set<std::string_view>; // tables are never freed: kernels may be launched while the process exits

// Most instructions exist for general registers (IADD3) and for uniform ones (UIADD3).
std::string_view general_name(std::string_view name) {
    static const Names &names =
        *new Names{"MOV",  "IADD",  "IADD3", "VIADD", "IMAD", "LEA",  "SEL", "SHF",    "LOP3",  "PRMT", "SGXT",
                   "BMSK", "ISETP", "PLOP3", "FLO",   "POPC", "BREV", "LDC", "VIMNMX", "IMNMX", "IABS"};
    if (name == "LDCU")
        return "LDC";
    return name.size() > 1 && name[0] == 'U' && names.count(name.substr(1)) > 0 ? name.substr(1) : name;
}

// Whether an instruction writes no register.
bool writes_nothing(std::string_view name) {
    static const Names &names =
        *new Names{"ISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "FCHK", "R2P", "NOP", "UFSETP", "VSETP"};
    return names.count(name) > 0;
}

// Whether the result of an instruction is never part of an address: floating-point numbers, counts, special registers.
bool gives_number(std::string_view name) {
    static const Names &names =
        *new Names{"S2R",   "CS2R",  "VOTE",  "VOTEU", "MATCH", "POPC",  "FLO",  "BREV", "BMSK", "MUFU", "I2F",
                   "I2FP",  "I2I",   "I2IP",  "F2I",   "F2F",   "F2FP",  "IMMA", "BMMA", "QMMA", "OMMA", "HGMMA",
                   "IGMMA", "QGMMA", "DGMMA", "BGMMA", "IDP",   "IDP4A", "IABS", "P2R",  "LEPC", "BMOV", "B2R",
                   "ELECT", "S2UR",  "UI2F",  "UF2F",  "UF2FP", "LDTM",  "QSPC", "SYNCS"};
    if (names.count(name) > 0)
        return true;
    return name != "FSEL" && name != "FSWZ" && (name[0] == 'F' || name[0] == 'D' || name[0] == 'H');
}

// Functions of CUDA that use no memory of the program. What `printf` prints as a string is not counted.
bool harmless(std::string_view function) {
    return function == "vprintf" || function == "__assertfail" || function == "malloc" || function == "free";
}

// Whether the program cannot get behind the instruction where its guard holds.
bool ends_thread(std::string_view name) { return name == "EXIT" || name == "KILL"; }

class PointerFlow {
public:
    PointerFlow(const SassListing &listing, const SassListing::Section &kernel, const ParameterBlock &block,
                const std::map<std::int64_t, std::string> &linked_functions, std::size_t &steps)
        : listing_(listing), kernel_(kernel), block_(block), linked_functions_(linked_functions),
          parameters_(block, listing.architecture), general_(listing.general_registers),
          uniform_(listing.uniform_registers), steps_(steps), last_step_(steps + most_steps) {}

    KernelUse follow() {
        if (!parameters_.known() || kernel_.begin == kernel_.end)
            throw CannotFollow();
        contexts_.push_back({nowhere, nowhere, kernel_.begin, 1});
        SassState start;
        start.registers.resize(general_ + uniform_ + barriers);
        edge(0, kernel_.begin, std::move(start));
        do {
            shared_changed_ = false;
            while (!waiting_.empty()) {
                const auto next = waiting_.begin()->second;
                waiting_.erase(waiting_.begin());
                run(next);
            }
            if (shared_changed_)
                for (std::size_t i = 0; i < blocks_.size(); ++i)
                    waiting_.emplace(blocks_[i].begin, i);
        } while (shared_changed_);
        recording_ = true;
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            run(i);
        return result();
    }

private:
    struct Context {
        std::size_t caller, call, function, depth;
    };
    struct Block {
        std::size_t context, begin;
        SassState state;
    };
    struct Word {
        Kind certain = Kind::none, possible = Kind::none;
    };
    using Guard = std::optional<Predicate>;

    // ------------------------------------------------------------------ blocks

    std::size_t label(std::string_view name) const {
        const auto found = listing_.labels.find(name);
        return found == listing_.labels.end() ? nowhere : found->second;
    }

    const SassListing::Section &section_of(std::size_t instruction) const {
        const auto found = std::upper_bound(
            listing_.sections.begin(), listing_.sections.end(), instruction,
            [](std::size_t place, const SassListing::Section &section) { return place < section.end; });
        if (found == listing_.sections.end() || instruction < found->begin)
            throw CannotFollow();
        return *found;
    }

    void edge(std::size_t context, std::size_t target, SassState state) {
        if (recording_)
            return;
        if (target >= listing_.instructions.size())
            throw CannotFollow();
        const auto [found, fresh] = numbers_.emplace(std::make_pair(context, target), blocks_.size());
        if (fresh) {
            if (blocks_.size() == most_blocks || blocks_.size() * state.registers.size() > most_values)
                throw CannotFollow();
            blocks_.push_back({context, target, std::move(state)});
            waiting_.emplace(target, found->second);
        } else if (blocks_[found->second].state.join(sets_, state)) {
            waiting_.emplace(target, found->second);
        }
    }

    void run(std::size_t number) {
        const std::size_t context = blocks_[number].context;
        registers_ = std::make_unique<SassRegisters>(blocks_[number].state);
        const SassListing::Section &section = section_of(blocks_[number].begin);
        for (std::size_t i = blocks_[number].begin;; ++i) {
            if (i >= section.end || ++steps_ > last_step_ || steps_ > most_steps_in_all ||
                listing_.instructions[i].name.empty())
                throw CannotFollow();
            if (i != blocks_[number].begin && listing_.leads[i])
                return edge(context, i, registers_->state(sets_, std::nullopt));
            if (!step(context, i))
                return;
        }
    }

    // Returns whether the next instruction follows in this block.
    bool step(std::size_t context, std::size_t i) {
        const Instruction &instruction = listing_.instructions[i];
        Guard guard = instruction.guard;
        if (guard && guard->number == Predicate::always) {
            if (guard->negated)
                return true; // never executed
            guard = std::nullopt;
        }
        guard_ = guard;
        const std::string_view name = instruction.name;
        // Where the guard does not hold.
        const auto otherwise = [&] {
            if (guard)
                edge(context, i + 1, registers_->state(sets_, Predicate{guard->number, !guard->negated}));
            return false;
        };
        if (ends_thread(name) || name == "RTT") {
            // EXIT may have a predicate of its own.
            const bool certain = instruction.operands.empty();
            if (!certain)
                edge(context, i + 1, registers_->state(sets_, std::nullopt));
            return otherwise();
        }
        if (name == "RET") {
            leave(context, instruction);
            return otherwise();
        }
        if (name == "CALL") {
            call(context, i);
            return otherwise();
        }
        if (name == "BRX" || name == "JMX" || name == "BRXU" || name == "JMXU") {
            if (instruction.targets.empty())
                throw CannotFollow();
            for (const std::string_view target : instruction.targets)
                edge(context, label(target), registers_->state(sets_, guard));
            return otherwise();
        }
        if (name == "BSYNC") {
            if (instruction.operands.empty())
                throw CannotFollow();
            const auto barrier = barrier_of(instruction.operands.back());
            const SassValue target = barrier ? registers_->read(sets_, *barrier, guard) : SassValue{};
            if (target.known) {
                if (std::size_t(target.constant) != i + 1)
                    edge(context, std::size_t(target.constant), registers_->state(sets_, guard));
                return true;
            }
            const auto found = listing_.rejoins.find(listing_.functions[i]);
            if (found != listing_.rejoins.end())
                for (const std::size_t place : found->second)
                    edge(context, place, registers_->state(sets_, guard));
            return true;
        }
        if (name == "BSSY") {
            const auto barrier = instruction.operands.size() < 2 ? std::nullopt : barrier_of(instruction.operands[0]);
            const std::size_t target = barrier ? label(instruction.operands.back().text) : nowhere;
            if (target >= listing_.instructions.size())
                throw CannotFollow();
            registers_->write(sets_, *barrier, guard, {0, std::int32_t(target), true});
            return true;
        }
        if (name == "BMOV") {
            if (instruction.operands.size() == 2) {
                const Operand &to = instruction.operands[0], &from = instruction.operands[1];
                const auto barrier = barrier_of(from);
                const SassValue moved = barrier ? registers_->read(sets_, *barrier, guard) : value(from, 0);
                if (const auto target = barrier_of(to))
                    registers_->write(sets_, *target, guard, moved);
                else if (to.kind == Operand::Kind::general)
                    write(&to, 0, moved);
            }
            return true;
        }
        if (name == "LEPC" || name == "BREAK") {
            if (name == "LEPC")
                write_number(instruction);
            return true;
        }
        for (const Operand &operand : instruction.operands)
            if (operand.kind == Operand::Kind::label) {
                edge(context, label(operand.text), registers_->state(sets_, guard));
                const bool certain = (name == "BRA" || name == "JMP") && instruction.operands.size() == 1 &&
                                     instruction.modifiers.empty();
                if (certain)
                    return otherwise();
                edge(context, i + 1, registers_->state(sets_, guard));
                return otherwise();
            }
        if (name == "BRA" || name == "JMP" || name == "BPT" || name == "SETLMEMBASE" || name == "RPCMOV") {
            if (name == "BPT")
                return true;
            throw CannotFollow();
        }
        compute(instruction);
        return true;
    }

    // The place of a convergence barrier among the registers. A barrier holds the place where its threads go on.
    std::optional<std::uint16_t> barrier_of(const Operand &operand) const {
        const std::string_view name = operand.text;
        if (operand.kind != Operand::Kind::other || name.size() < 2 || name.size() > 3 || name[0] != 'B')
            return std::nullopt;
        std::size_t number = 0;
        for (const char c : name.substr(1)) {
            if (c < '0' || c > '9')
                return std::nullopt;
            number = number * 10 + std::size_t(c - '0');
        }
        if (number >= barriers)
            return std::nullopt;
        return std::uint16_t(general_ + uniform_ + number);
    }

    // ------------------------------------------------------------------ calls

    void call(std::size_t context, std::size_t i) {
        const Instruction &instruction = listing_.instructions[i];
        const Operand *target = nullptr, *pointer = nullptr;
        for (const Operand &operand : instruction.operands)
            if (operand.kind == Operand::Kind::label)
                target = &operand;
            else if (operand.kind == Operand::Kind::general || operand.kind == Operand::Kind::constant)
                pointer = &operand;
        const std::size_t place = pointer == nullptr && target != nullptr ? label(target->text) : nowhere;
        if (place < listing_.instructions.size()) {
            const bool inside = listing_.functions[place] == listing_.functions[i] && place != listing_.functions[i];
            // The compiler also jumps inside a function in this way.
            return inside ? edge(context, place, registers_->state(sets_, guard_)) : enter(context, i, place);
        }
        // A call of a function of CUDA itself, whose address the linker puts into constant bank 4.
        const bool absolute = instruction.has("ABS");
        if (!absolute || (pointer == nullptr && target == nullptr))
            throw CannotFollow();
        if (!(pointer == nullptr ? harmless(target->text) : is_harmless(value(*pointer, 0))))
            throw CannotFollow();
        for (std::uint16_t result = 4; result < 6; ++result)
            registers_->write(sets_, result, guard_, {sets_.single(module_memory), 0, false});
        edge(context, i + 1, registers_->state(sets_, guard_));
    }

    bool is_harmless(const SassValue &function) {
        if (function.origins != sets_.single(module_memory))
            return false;
        const auto linked = function.known ? linked_functions_.find(function.constant) : linked_functions_.end();
        if (linked != linked_functions_.end())
            return harmless(linked->second);
        // Only the names of the functions are known, so that the function may be any of them.
        return linked_functions_.empty() && !kernel_.has_functions && !listing_.has_functions &&
               !listing_.externals.empty() &&
               std::all_of(listing_.externals.begin(), listing_.externals.end(), harmless);
    }

    // Each call has its own copy of the function, so that the registers of two callers do not mix.
    void enter(std::size_t context, std::size_t i, std::size_t function) {
        const auto [found, fresh] = calls_.emplace(std::make_pair(context, i), contexts_.size());
        if (fresh) {
            for (std::size_t outer = context; outer != nowhere; outer = contexts_[outer].caller)
                if (contexts_[outer].function == function)
                    throw CannotFollow();
            const std::size_t depth = contexts_[context].depth + 1;
            if (contexts_.size() == most_calls || depth > deepest_call)
                throw CannotFollow();
            contexts_.push_back({context, i, function, depth});
        }
        edge(found->second, function, registers_->state(sets_, guard_));
    }

    void leave(std::size_t context, const Instruction &instruction) {
        const Context &from = contexts_[context];
        if (from.caller == nowhere)
            throw CannotFollow();
        std::size_t target = from.call + 1;
        if (!instruction.operands.empty() && instruction.operands[0].kind == Operand::Kind::general) {
            const SassValue address = value(instruction.operands[0], 0);
            const SassListing::Section &section = section_of(from.call);
            if (address.known && address.origins == 0) {
                target = section.begin + std::size_t(std::uint32_t(address.constant)) / 16;
                if (target >= section.end)
                    throw CannotFollow();
            }
        }
        edge(from.caller, target, registers_->state(sets_, guard_));
    }

    // ------------------------------------------------------------------ values

    std::uint16_t place(std::uint16_t number) const {
        if (number < Register::uniform)
            return number < general_ ? number : Register::zero;
        const std::size_t uniform = number - Register::uniform;
        return number != Register::zero && uniform < uniform_ ? std::uint16_t(general_ + uniform) : Register::zero;
    }

    SassValue read(std::uint16_t number, unsigned half) {
        if (number == Register::zero)
            return {0, 0, true};
        return registers_->read(sets_, place(std::uint16_t(number + half)), guard_);
    }

    SassValue constant(const Operand &operand, std::int64_t further) {
        bool indexed = false;
        std::int64_t offset = operand.number + further;
        for (const Register &index : operand.registers) {
            const SassValue found = read(index.number, 0);
            if (found.known && found.origins == 0)
                offset += found.constant;
            else
                indexed = true;
        }
        if (operand.bank == 0 && indexed && parameters_.far_below(offset))
            return {sets_.single(module_memory), 0, false};
        if (operand.bank == 0 && indexed)
            return {sets_.single(parameters_.in_member(offset) ? member_word : any_word), 0, false};
        if (operand.bank == 0)
            return parameters_.bank_value(sets_, offset);
        if (operand.bank == 4)
            return {sets_.single(module_memory), indexed ? 0 : std::int32_t(offset), !indexed};
        // Banks 1 and 2 hold what the compiler puts there, bank 3 what the program puts there.
        return {operand.bank < 3 ? 0 : sets_.single(wide_load), 0, false};
    }

    // The low half (0) or the high half (1) of an operand.
    SassValue value(const Operand &operand, unsigned half) {
        switch (operand.kind) {
        case Operand::Kind::general:
            return read(operand.registers[0].number, half);
        case Operand::Kind::immediate:
            return {0, std::int32_t(std::uint64_t(operand.number) >> 32 * half), true};
        case Operand::Kind::constant:
            return constant(operand, 4 * half);
        case Operand::Kind::other:
            return {names_variable(operand.text) ? sets_.single(module_memory) : 0, 0, false};
        default:
            return {};
        }
    }

    // 32@lo(name), 32@hi(name): half of the address of a variable of the module, or of a place in the code.
    bool names_variable(std::string_view text) const {
        if (text.substr(0, 6) != "32@lo(" && text.substr(0, 6) != "32@hi(")
            return false;
        text.remove_prefix(6);
        const std::string_view name = text.substr(0, text.find_first_of(" )"));
        return !name.empty() && name[0] != '(' && label(name) == nowhere;
    }

    struct Term {
        SassValue value;
        bool negated;
    };

    // An address is the sum of one pointer and of numbers. Where the pointer is known, the other terms are numbers.
    SassValue sum(const std::vector<Term> &terms) {
        bool address = false, word = false;
        for (const Term &term : terms) {
            if (term.negated)
                continue;
            const auto &members = sets_.members(term.value.origins);
            address =
                address || (!members.empty() && std::all_of(members.begin(), members.end(), [&](std::uint32_t origin) {
                    return origin == module_memory || origin == own_memory || origin == block_address ||
                           parameters_.marked(origin);
                }));
            word = word || std::any_of(members.begin(), members.end(), [&](std::uint32_t origin) {
                       return origin >= first_word && !parameters_.plain(origin);
                   });
        }
        SassValue total{0, 0, true};
        std::size_t bases = 0;
        std::uint32_t constant = 0;
        for (const Term &term : terms) {
            total.known = total.known && term.value.known;
            constant += std::uint32_t(term.value.constant) * (term.negated ? ~0u : 1u);
            if (term.value.origins == 0)
                continue;
            bases += term.negated ? 2 : 1;
            if (term.negated)
                continue;
            total.origins = sets_.joined(total.origins, sets_.filtered(term.value.origins, [&](std::uint32_t origin) {
                const auto &members = sets_.members(term.value.origins);
                // A set that is itself an address keeps its members.
                const bool mixed = std::any_of(members.begin(), members.end(), [&](std::uint32_t other) {
                    return other >= first_word && !parameters_.plain(other);
                });
                if (mixed)
                    return true;
                if (address && (origin == wide_load || origin == narrow_load || parameters_.plain(origin)))
                    return false;
                return !(word && origin == narrow_load);
            }));
        }
        total.constant = std::int32_t(constant);
        total.known = total.known && bases <= 1;
        if (!total.known)
            total.constant = 0;
        return total;
    }

    // ------------------------------------------------------------------ instructions

    static bool is_value(const Operand &operand) {
        return operand.kind == Operand::Kind::general || operand.kind == Operand::Kind::immediate ||
               operand.kind == Operand::Kind::constant || operand.kind == Operand::Kind::other;
    }

    // The register that an instruction writes, and the operands behind it.
    static const Operand *target_of(const Instruction &instruction, std::vector<const Operand *> &sources) {
        const Operand *target = nullptr;
        bool first = true;
        for (const Operand &operand : instruction.operands) {
            if (first && operand.kind == Operand::Kind::predicate)
                continue;
            if (first && operand.kind == Operand::Kind::general)
                target = &operand;
            else if (is_value(operand))
                sources.push_back(&operand);
            first = false;
        }
        return target;
    }

    void write(const Operand *target, unsigned piece, SassValue value) {
        if (target == nullptr || target->registers[0].number == Register::zero)
            return;
        registers_->write(sets_, place(std::uint16_t(target->registers[0].number + piece)), guard_, value);
    }

    void write_number(const Instruction &instruction) {
        std::vector<const Operand *> sources;
        write(target_of(instruction, sources), 0, {});
    }

    SassValue all(const std::vector<const Operand *> &sources, unsigned half) {
        SassValue found{};
        for (const Operand *source : sources)
            found.origins = sets_.joined(found.origins, value(*source, half).origins);
        return found;
    }

    void forget_predicates(const Instruction &instruction) {
        if (instruction.name == "R2P" || instruction.name == "UR2UP" || instruction.name == "R2UP")
            for (std::uint8_t predicate = 0; predicate < 16; ++predicate)
                registers_->forget(sets_, predicate);
        for (const Operand &operand : instruction.operands)
            if (operand.kind == Operand::Kind::predicate && operand.predicate.number != Predicate::always &&
                !operand.predicate.negated)
                registers_->forget(sets_, operand.predicate.number);
    }

    void compute(const Instruction &instruction) {
        if (const auto use = memory_use_of(instruction)) {
            use_memory(instruction, *use);
        } else {
            move_values(instruction);
        }
        forget_predicates(instruction);
    }

    void move_values(const Instruction &instruction) {
        const std::string_view name = general_name(instruction.name);
        if (writes_nothing(name))
            return;
        std::vector<const Operand *> sources;
        const Operand *target = target_of(instruction, sources);
        if (target == nullptr)
            return;
        const unsigned pieces = instruction.has("64") || (name == "IMAD" && instruction.has("WIDE")) ? 2 : 1;
        // Both halves are read before one is written: the target may be a source.
        SassValue results[8] = {};
        unsigned count = pieces;
        const auto source = [&](std::size_t index) { return index < sources.size() ? sources[index] : nullptr; };
        const auto term = [&](std::size_t index, unsigned half) {
            const Operand *found = source(index);
            return found == nullptr ? Term{{0, 0, true}, false} : Term{value(*found, half), found->negated};
        };
        if (name == "LDC") {
            const unsigned width = width_of(instruction);
            count = std::max(1u, width / 32);
            for (unsigned piece = 0; piece < count; ++piece)
                if (width >= 32 && source(0) != nullptr && source(0)->kind == Operand::Kind::constant)
                    results[piece] = constant(*source(0), 4 * piece);
        } else if (name == "MOV" || name == "R2UR" || name == "MOV32I" || name == "SHFL" || name == "SGXT") {
            for (unsigned piece = 0; piece < pieces; ++piece)
                results[piece] = term(0, piece).value;
            if (name != "MOV" && name != "MOV32I" && name != "R2UR")
                results[0].known = false;
        } else if (name == "IADD" || name == "IADD3" || name == "VIADD") {
            for (unsigned piece = 0; piece < pieces; ++piece)
                results[piece] = sum({term(0, piece), term(1, piece), term(2, piece)});
            // A sum with a carry is the high half of a number.
            if (instruction.has("X") || pieces > 1)
                results[pieces - 1].known = false;
        } else if (name == "IMAD") {
            multiply(instruction, sources, pieces, results);
        } else if (name == "LEA") {
            // The first source is shifted, hence a number, and the second one is the base.
            const Operand *shift = nullptr;
            for (const Operand *operand : sources)
                if (operand->kind == Operand::Kind::immediate)
                    shift = operand;
            const bool shifted =
                shift != nullptr && shift == sources.back() && shift->number != 0 && sources.size() > 2;
            for (unsigned piece = 0; piece < pieces; ++piece)
                results[piece] = shifted ? sum({{{}, false}, term(1, piece)}) : sum({term(0, piece), term(1, piece)});
        } else if (name == "SEL" || name == "FSEL") {
            for (unsigned piece = 0; piece < pieces; ++piece)
                results[piece] = joined(sets_, term(0, piece).value, term(1, piece).value);
        } else if (name == "SHF") {
            const Operand *shift = source(1);
            const bool fixed = shift != nullptr && shift->kind == Operand::Kind::immediate;
            const bool right = instruction.has("R");
            if (!(fixed && (right ? shift->number >= 16 : shift->number > 0)))
                results[0] = {
                    all({source(0) == nullptr ? target : source(0), source(2) == nullptr ? target : source(2)}, 0)
                        .origins,
                    0, false};
        } else if (name == "LOP3") {
            // And with a small mask: a remainder, no address.
            const Operand *lut = nullptr;
            for (const Operand *operand : sources)
                if (operand->kind == Operand::Kind::immediate)
                    lut = operand;
            const bool remainder = lut != nullptr && lut->number == 0xc0 &&
                                   std::any_of(sources.begin(), sources.end(), [&](const Operand *operand) {
                                       return operand != lut && operand->kind == Operand::Kind::immediate &&
                                              operand->number >= 0 && operand->number < 0x10000;
                                   });
            if (!remainder)
                results[0].origins = all(sources, 0).origins;
        } else if (name == "S2R" || name == "S2UR" || name == "GETLMEMBASE") {
            if (name == "GETLMEMBASE" || (source(0) != nullptr && source(0)->text.substr(0, 5) == "SR_SW"))
                results[0].origins = sets_.single(own_memory);
        } else if (name == "CS2R") {
            count = instruction.has("32") ? 1 : 2;
        } else if (name == "PRMT" || name == "VIMNMX" || name == "IMNMX" || name == "VIADDMNMX") {
            results[0].origins = all(sources, 0).origins;
        } else if (!gives_number(name)) {
            // An instruction of which nothing is known keeps what the register had, and adds its operands.
            for (unsigned piece = 0; piece < pieces; ++piece)
                results[piece].origins = sets_.joined(value(*target, piece).origins, all(sources, piece).origins);
        }
        for (unsigned piece = 0; piece < count; ++piece)
            write(target, piece, results[piece]);
    }

    void multiply(const Instruction &instruction, const std::vector<const Operand *> &sources, unsigned pieces,
                  SassValue *results) {
        if (sources.size() < 3)
            return;
        const auto is_one = [](const Operand &operand) {
            return operand.kind == Operand::Kind::immediate && operand.number == 1;
        };
        for (unsigned piece = 0; piece < pieces; ++piece) {
            std::vector<Term> terms = {{value(*sources[2], piece), sources[2]->negated}};
            if (is_one(*sources[1]))
                terms.push_back({value(*sources[0], piece), sources[0]->negated});
            else if (is_one(*sources[0]))
                terms.push_back({value(*sources[1], piece), sources[1]->negated});
            else if (const SassValue left = value(*sources[0], 0), right = value(*sources[1], 0);
                     !(left.known && left.origins == 0 && left.constant == 0) &&
                     !(right.known && right.origins == 0 && right.constant == 0))
                terms.push_back({{}, false}); // a product: a number that is not known
            results[piece] = sum(terms);
        }
        if (instruction.has("X") || instruction.has("HI") || pieces > 1)
            results[pieces - 1].known = false;
    }

    // ------------------------------------------------------------------ memory

    struct Address {
        SassValue low;
        Origins high = 0;
    };

    Address address_of(const Operand &operand) {
        Address found;
        std::vector<Term> terms, offsets;
        for (const Register &part : operand.registers) {
            (part.offset ? offsets : terms).push_back({read(part.number, 0), false});
            if (!part.offset)
                found.high = sets_.joined(found.high, read(part.number, 1).origins);
        }
        if (terms.empty())
            terms = offsets;
        else if (!offsets.empty())
            terms.push_back({{}, false});
        terms.push_back({{0, std::int32_t(operand.number), true}, false});
        found.low = sum(terms);
        return found;
    }

    void use_memory(const Instruction &instruction, const MemoryUse &use) {
        if (use.unknown) {
            if (use.space != Space::none)
                lose();
            incomplete();
        }
        const unsigned width = width_of(instruction), pieces = std::min(8u, std::max(1u, width / 32));
        SassValue loaded{};
        SassValue exact[8] = {};
        bool has_exact = false;
        if (use.space != Space::none && use.address != nullptr) {
            const Address address = address_of(*use.address);
            if (use.space == Space::shared) {
                if (std::uint8_t(use.kind) & std::uint8_t(Kind::write))
                    keep(shared_, stored(instruction, use, pieces));
                loaded.origins = shared_;
            } else if (use.space == Space::stack) {
                use_stack(instruction, use, address.low, width, pieces, exact);
                has_exact = true;
            } else if (use.space == Space::map) {
                use_map(use, address.low);
            } else {
                loaded.origins = use_address(instruction, use, address, pieces, exact, has_exact);
            }
        }
        if (use.to_shared)
            keep(shared_, sets_.single(wide_load));
        if (use.kind == Kind::write || use.kind == Kind::none) {
            if (use.space == Space::none)
                write_number(instruction);
            return;
        }
        // The registers in front of the address get what the instruction loads.
        std::vector<const Operand *> targets;
        for (const Operand &operand : instruction.operands) {
            if (operand.kind == Operand::Kind::memory)
                break;
            if (operand.kind == Operand::Kind::general)
                targets.push_back(&operand);
        }
        const auto each = targets.empty() ? 0u : std::max(1u, pieces / unsigned(targets.size()));
        for (std::size_t i = 0; i < targets.size(); ++i)
            for (unsigned piece = 0; piece < each; ++piece)
                write(targets[i], piece, has_exact ? exact[(i * each + piece) % 8] : loaded);
    }

    // What an instruction stores: all of its operands behind the address.
    Origins stored(const Instruction &instruction, const MemoryUse &use, unsigned pieces) {
        Origins found = 0;
        bool behind = false;
        for (const Operand &operand : instruction.operands) {
            if (behind && operand.kind == Operand::Kind::general)
                for (unsigned piece = 0; piece < pieces; ++piece)
                    found = sets_.joined(found, read(operand.registers[0].number, piece).origins);
            behind = behind || &operand == use.address;
        }
        return found;
    }

    // Whether the address is that of a known place of the stack.
    bool is_slot(const SassValue &address) {
        return address.known && address.origins == sets_.single(own_memory) && address.constant % 4 == 0;
    }

    void use_stack(const Instruction &instruction, const MemoryUse &use, const SassValue &address, unsigned width,
                   unsigned pieces, SassValue *loaded) {
        const bool exact = is_slot(address) && use.kind != Kind::both;
        if (use.kind != Kind::read) {
            keep(stack_, stored(instruction, use, pieces));
            const Operand *source = nullptr;
            for (const Operand &operand : instruction.operands)
                if (operand.kind == Operand::Kind::general)
                    source = &operand;
            if (!exact || width < 32)
                store_loosely(stored(instruction, use, pieces));
            for (unsigned piece = 0; exact && source != nullptr && piece < pieces; ++piece) {
                SassValue value = read(source->registers[0].number, piece);
                const auto at = std::int32_t(std::uint32_t(address.constant) + 4 * piece);
                const auto old = registers_->stack.find(at);
                if (width < 32)
                    value = {value.origins, 0, false};
                if ((guard_ || width < 32) && old != registers_->stack.end())
                    value = joined(sets_, old->second, value);
                else if (guard_)
                    value.known = false;
                registers_->stack[at] = value;
                if (registers_->stack.size() > 4096)
                    throw CannotFollow();
            }
        }
        if (use.kind == Kind::write)
            return;
        for (unsigned piece = 0; piece < pieces; ++piece) {
            SassValue value{stack_, 0, false};
            if (exact) {
                const auto at = std::int32_t(std::uint32_t(address.constant) + 4 * piece);
                const auto found = registers_->stack.find(at);
                value = found == registers_->stack.end() ? SassValue{} : found->second;
                const Origins both = sets_.joined(value.origins, loose_stack_);
                value = {both, value.constant, value.known && !stored_loosely_ && width == 32 * pieces};
            }
            loaded[piece] = value;
        }
    }

    // The kernel gives the address of a tensor map: of a parameter, or of memory whose map is unknown.
    void use_map(const MemoryUse &use, const SassValue &address) {
        constexpr std::size_t map_size = 128;
        for (const std::uint32_t origin : sets_.members(address.origins)) {
            if (origin != block_address) {
                incomplete();
                record(origin, Kind::read, false);
            } else if (address.known && address.constant >= 0) {
                for (std::size_t at = 0; at < map_size; at += 8) {
                    const Origins word = parameters_.word(sets_, address.constant + std::int64_t(at)).origins;
                    for (const std::uint32_t found : sets_.members(word))
                        record(found, use.kind, false);
                }
            } else {
                record(any_word, use.kind, false);
            }
        }
        if (address.origins == 0)
            lose();
    }

    // Returns what the instruction may load.
    Origins use_address(const Instruction &instruction, const MemoryUse &use, const Address &address, unsigned pieces,
                        SassValue *exact, bool &has_exact) {
        const Origins from_memory = sets_.single(width_of(instruction) >= 64 ? wide_load : narrow_load);
        Origins origins = address.low.origins, loaded = 0;
        // The low half of an address of shared memory is a plain number.
        if (origins == 0 && address.high == sets_.single(own_memory))
            origins = address.high;
        if (origins == 0) {
            lose();
            return from_memory;
        }
        const bool certain = sets_.members(origins).size() == 1 && !use.unknown;
        if (certain && origins == address.low.origins && is_slot(address.low)) {
            use_stack(instruction, use, address.low, width_of(instruction), pieces, exact);
            has_exact = true;
            return 0;
        }
        for (const std::uint32_t origin : sets_.members(origins)) {
            if (origin == own_memory) {
                if (std::uint8_t(use.kind) & std::uint8_t(Kind::write)) {
                    const Origins data = stored(instruction, use, pieces);
                    keep(shared_, data);
                    keep(stack_, data);
                    store_loosely(data);
                }
                loaded = sets_.joined(loaded, sets_.joined(shared_, stack_));
                continue;
            }
            if (origin == block_address) {
                if (use.kind != Kind::read) {
                    lose();
                } else if (address.low.known && sets_.members(origins).size() == 1) {
                    has_exact = width_of(instruction) >= 32;
                    for (unsigned piece = 0; piece < pieces && has_exact; ++piece)
                        exact[piece] = parameters_.word(sets_, std::int64_t(address.low.constant) + 4 * piece);
                } else {
                    loaded = sets_.joined(loaded, sets_.single(any_word));
                }
                continue;
            }
            loaded = sets_.joined(loaded, from_memory);
            if (origin == module_memory)
                continue;
            if (origin == wide_load || origin == narrow_load)
                incomplete();
            else
                record(origin, use.kind, certain);
        }
        return loaded;
    }

    // Anywhere in the stack.
    void store_loosely(Origins data) {
        shared_changed_ = shared_changed_ || !stored_loosely_;
        stored_loosely_ = true;
        keep(loose_stack_, data);
    }

    void keep(Origins &kept, Origins more) {
        const Origins both = sets_.joined(kept, more);
        if (both != kept) {
            kept = both;
            shared_changed_ = true;
        }
    }

    // ------------------------------------------------------------------ results

    void incomplete() {
        if (recording_)
            complete_ = false;
    }

    // An address whose origin is unknown may be that of any parameter.
    void lose() const {
        if (recording_)
            throw CannotFollow();
    }

    void record(std::uint32_t origin, Kind kind, bool certain) {
        if (!recording_)
            return;
        if (origin != member_word && origin != any_word && origin < first_word)
            return;
        const bool known = parameters_.each_word(origin, [&](std::size_t offset) {
            Word &word = words_[offset];
            const bool sure = certain && origin >= first_word;
            (sure ? word.certain : word.possible) = (sure ? word.certain : word.possible) | kind;
        });
        if (!known)
            lose();
    }

    KernelUse result() const {
        KernelUse use;
        use.parameters = block_.parameters;
        use.complete = complete_;
        for (const auto &[offset, word] : words_) {
            PointerUse pointer;
            pointer.offset = offset;
            pointer.kind = word.certain | word.possible;
            pointer.possible = pointer.kind != word.certain;
            use.pointers.push_back(std::move(pointer));
        }
        return use;
    }

    const SassListing &listing_;
    const SassListing::Section &kernel_;
    const ParameterBlock &block_;
    const std::map<std::int64_t, std::string> &linked_functions_;
    SassParameters parameters_;
    OriginSets sets_;

    const std::size_t general_, uniform_; // how many registers of each kind there are
    std::vector<Context> contexts_;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> calls_, numbers_;
    std::vector<Block> blocks_;
    std::set<std::pair<std::size_t, std::size_t>> waiting_; // by place, which is near the order of the flow
    std::unique_ptr<SassRegisters> registers_;
    Guard guard_;
    std::size_t &steps_;
    const std::size_t last_step_;

    // What any thread may have stored into shared memory, into the stack, and into the stack at an unknown place.
    Origins shared_ = 0, stack_ = 0, loose_stack_ = 0;
    bool stored_loosely_ = false, shared_changed_ = false, recording_ = false, complete_ = true;
    std::map<std::size_t, Word> words_;
};

} // namespace

KernelUse follow_pointers(const SassListing &listing, const SassListing::Section &kernel, const ParameterBlock &block,
                          const std::map<std::int64_t, std::string> &linked_functions, std::size_t &steps) {
    try {
        return PointerFlow(listing, kernel, block, linked_functions, steps).follow();
    } catch (const CannotFollow &) {
        KernelUse unknown;
        unknown.parameters = block.parameters;
        return unknown;
    }
}

} // namespace tcuda::kernel_uses
