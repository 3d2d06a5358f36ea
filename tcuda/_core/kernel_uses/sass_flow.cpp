#include "kernel_uses/sass_flow.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "kernel_uses/cannot_follow.hpp"
#include "kernel_uses/sass_accesses.hpp"
#include "kernel_uses/sass_arithmetic.hpp"
#include "kernel_uses/sass_memory.hpp"
#include "kernel_uses/sass_record.hpp"
#include "kernel_uses/sass_thread.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::size_t most_blocks = 1 << 14, most_calls = 256, deepest_call = 24;
constexpr std::size_t most_values = 1 << 22; // in the states of all basic blocks
constexpr std::size_t most_steps = 1 << 22;  // instructions of a kernel that are followed
constexpr std::size_t most_steps_in_all = 1 << 26;
constexpr std::size_t nowhere = std::size_t(-1);

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
        : listing_(listing), kernel_(kernel), linked_functions_(linked_functions), thread_(listing, block),
          record_(block, thread_.parameters()), accesses_(thread_, record_), steps_(steps),
          last_step_(steps + most_steps) {}

    KernelUse follow() {
        if (!thread_.parameters().known() || kernel_.begin == kernel_.end)
            throw CannotFollow();
        contexts_.push_back({nowhere, nowhere, kernel_.begin, 1});
        edge(0, kernel_.begin, thread_.start());
        bool changed;
        do {
            while (!waiting_.empty()) {
                const auto next = waiting_.begin()->second;
                waiting_.erase(waiting_.begin());
                run(next);
            }
            changed = accesses_.take_change();
            if (changed)
                for (std::size_t i = 0; i < blocks_.size(); ++i)
                    waiting_.emplace(blocks_[i].begin, i);
        } while (changed);
        record_.begin();
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            run(i);
        return record_.result();
    }

private:
    struct Context {
        std::size_t caller, call, function, depth;
    };
    struct Block {
        std::size_t context, begin;
        SassState state;
    };
    using Guard = SassThread::Guard;

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
        if (record_.begun())
            return;
        if (target >= listing_.instructions.size())
            throw CannotFollow();
        const auto [found, fresh] = numbers_.emplace(std::make_pair(context, target), blocks_.size());
        if (fresh) {
            if (blocks_.size() == most_blocks || blocks_.size() * state.registers.size() > most_values)
                throw CannotFollow();
            blocks_.push_back({context, target, std::move(state)});
            waiting_.emplace(target, found->second);
        } else if (blocks_[found->second].state.join(thread_.sets(), state)) {
            waiting_.emplace(target, found->second);
        }
    }

    void run(std::size_t number) {
        const std::size_t context = blocks_[number].context;
        thread_.begin_block(blocks_[number].state);
        const SassListing::Section &section = section_of(blocks_[number].begin);
        for (std::size_t i = blocks_[number].begin;; ++i) {
            if (i >= section.end || ++steps_ > last_step_ || steps_ > most_steps_in_all ||
                listing_.instructions[i].name.empty())
                throw CannotFollow();
            if (i != blocks_[number].begin && listing_.leads[i])
                return edge(context, i, thread_.state(std::nullopt));
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
        thread_.begin_instruction(guard);
        const std::string_view name = instruction.name;
        // Where the guard does not hold.
        const auto otherwise = [&] {
            if (guard)
                edge(context, i + 1, thread_.state(Predicate{guard->number, !guard->negated}));
            return false;
        };
        if (ends_thread(name) || name == "RTT") {
            // EXIT may have a predicate of its own.
            const bool certain = instruction.operands.empty();
            if (!certain)
                edge(context, i + 1, thread_.state(std::nullopt));
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
                edge(context, label(target), thread_.state(guard));
            return otherwise();
        }
        if (name == "BSYNC") {
            if (instruction.operands.empty())
                throw CannotFollow();
            const auto barrier = thread_.barrier_of(instruction.operands.back());
            const SassValue target = barrier ? thread_.read_at(*barrier) : SassValue{};
            if (target.known) {
                if (std::size_t(target.constant) != i + 1)
                    edge(context, std::size_t(target.constant), thread_.state(guard));
                return true;
            }
            const auto found = listing_.rejoins.find(listing_.functions[i]);
            if (found != listing_.rejoins.end())
                for (const std::size_t place : found->second)
                    edge(context, place, thread_.state(guard));
            return true;
        }
        if (name == "BSSY") {
            const auto barrier =
                instruction.operands.size() < 2 ? std::nullopt : thread_.barrier_of(instruction.operands[0]);
            const std::size_t target = barrier ? label(instruction.operands.back().text) : nowhere;
            if (target >= listing_.instructions.size())
                throw CannotFollow();
            thread_.write_at(*barrier, {0, std::int32_t(target), true});
            return true;
        }
        if (name == "BMOV") {
            if (instruction.operands.size() == 2) {
                const Operand &to = instruction.operands[0], &from = instruction.operands[1];
                const auto barrier = thread_.barrier_of(from);
                const SassValue moved = barrier ? thread_.read_at(*barrier) : thread_.value(from, 0);
                if (const auto target = thread_.barrier_of(to))
                    thread_.write_at(*target, moved);
                else if (to.kind == Operand::Kind::general)
                    thread_.write(&to, 0, moved);
            }
            return true;
        }
        if (name == "LEPC" || name == "BREAK") {
            if (name == "LEPC")
                thread_.write_number(instruction);
            return true;
        }
        for (const Operand &operand : instruction.operands)
            if (operand.kind == Operand::Kind::label) {
                edge(context, label(operand.text), thread_.state(guard));
                const bool certain = (name == "BRA" || name == "JMP") && instruction.operands.size() == 1 &&
                                     instruction.modifiers.empty();
                if (certain)
                    return otherwise();
                edge(context, i + 1, thread_.state(guard));
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
            return inside ? edge(context, place, thread_.state(thread_.guard())) : enter(context, i, place);
        }
        // A call of a function of CUDA itself, whose address the linker puts into constant bank 4.
        const bool absolute = instruction.has("ABS");
        if (!absolute || (pointer == nullptr && target == nullptr))
            throw CannotFollow();
        if (!(pointer == nullptr ? harmless(target->text) : is_harmless(thread_.value(*pointer, 0))))
            throw CannotFollow();
        for (std::uint16_t result = 4; result < 6; ++result)
            thread_.write_at(result, {thread_.sets().single(module_memory), 0, false});
        edge(context, i + 1, thread_.state(thread_.guard()));
    }

    bool is_harmless(const SassValue &function) {
        if (function.origins != thread_.sets().single(module_memory))
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
        edge(found->second, function, thread_.state(thread_.guard()));
    }

    void leave(std::size_t context, const Instruction &instruction) {
        const Context &from = contexts_[context];
        if (from.caller == nowhere)
            throw CannotFollow();
        std::size_t target = from.call + 1;
        if (!instruction.operands.empty() && instruction.operands[0].kind == Operand::Kind::general) {
            const SassValue address = thread_.value(instruction.operands[0], 0);
            const SassListing::Section &section = section_of(from.call);
            if (address.known && address.origins == 0) {
                target = section.begin + std::size_t(std::uint32_t(address.constant)) / 16;
                if (target >= section.end)
                    throw CannotFollow();
            }
        }
        edge(from.caller, target, thread_.state(thread_.guard()));
    }

    void compute(const Instruction &instruction) {
        if (const auto use = memory_use_of(instruction))
            accesses_.use(instruction, *use);
        else
            move_values(thread_, instruction);
        thread_.forget_predicates(instruction);
    }

    const SassListing &listing_;
    const SassListing::Section &kernel_;
    const std::map<std::int64_t, std::string> &linked_functions_;
    SassThread thread_;
    SassRecord record_;
    SassAccesses accesses_;

    std::vector<Context> contexts_;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> calls_, numbers_;
    std::vector<Block> blocks_;
    std::set<std::pair<std::size_t, std::size_t>> waiting_; // by place, which is near the order of the flow
    std::size_t &steps_;
    const std::size_t last_step_;
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
