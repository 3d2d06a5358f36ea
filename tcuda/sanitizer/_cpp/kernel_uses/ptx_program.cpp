#include "sanitizer/_cpp/kernel_uses/ptx_program.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_opcode.hpp"
#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr std::size_t most_instructions = std::size_t(1) << 15; // of a kernel
constexpr unsigned most_calls = 8;                       // of functions by functions

// Whether each call of the function comes back, if its loops end.
bool comes_back(const Module &module, std::string_view name, unsigned depth) {
    if (name == "vprintf" || name == "free" || name == "malloc")
        return true;
    const auto found = module.functions_by_name.find(name);
    if (found == module.functions_by_name.end() || !module.functions[found->second].has_body || depth == most_calls)
        return false;
    const Function &function = module.functions[found->second];
    return std::all_of(function.instructions.begin(), function.instructions.end(), [&](const Instruction &instruction) {
        const Operation &operation = module.operations[instruction.operation];
        const auto opcode = module.opcodes[instruction.operation];
        if (operation.act != Act::call)
            return operation.is_known && opcode != "exit" && opcode != "trap" && !is_strong(opcode);
        return instruction.is_direct &&
               comes_back(module, function.names[function.operands[instruction.first + instruction.results].index],
                          depth + 1);
    });
}

class Compiler {
public:
    Compiler(const Module &module, const Function &entry, Program &program)
        : module_(module), entry_(entry), program_(program) {}

    void compile() {
        place_variables();
        for (const Instruction &instruction : entry_.instructions)
            add(instruction);
        program_.registers = entry_.registers;
    }

private:
    void place_variables() {
        std::uint64_t place = variable_base;
        places_.resize(entry_.variables.size());
        for (std::size_t number = 0; number < entry_.variables.size(); ++number) {
            const Variable &variable = entry_.variables[number];
            if (variable.storage == Storage::argument) {
                places_[number] = parameter_base + variable.offset;
            } else if (variable.storage == Storage::local || variable.storage == Storage::parameter) {
                place = (place + 255) / 256 * 256;
                places_[number] = place;
                place += variable.size;
            }
        }
        for (const auto number : entry_.arguments) {
            const Variable &variable = entry_.variables[number];
            program_.parameters.push_back({variable.offset, variable.size});
            program_.parameter_bytes = std::max(program_.parameter_bytes, variable.offset + variable.size);
        }
    }

    Source source_of(const Operand &operand) const {
        Source source;
        source.negated = operand.is_negated;
        source.number = operand.offset;
        switch (operand.kind) {
        case Operand::Kind::number:
            source.kind = Source::Kind::number;
            break;
        case Operand::Kind::reg:
            source.kind = Source::Kind::reg;
            source.index = operand.index;
            break;
        case Operand::Kind::variable:
            if (places_[operand.index] != 0) {
                source.kind = Source::Kind::number;
                source.number += static_cast<std::int64_t>(places_[operand.index]);
            }
            break;
        case Operand::Kind::name:
            name_source(entry_.names[operand.index], &source);
            break;
        default:
            break;
        }
        return source;
    }

    static void name_source(std::string_view name, Source *source) {
        using Kind = Source::Kind;
        constexpr std::pair<std::string_view, Kind> triples[] = {{"%tid.", Kind::thread_index},
                                                                 {"%ntid.", Kind::block_size},
                                                                 {"%ctaid.", Kind::block_index},
                                                                 {"%nctaid.", Kind::grid_size}};
        for (const auto &[begin, kind] : triples) {
            if (!starts_with(name, begin) || name.size() != begin.size() + 1)
                continue;
            const char axis = name.back();
            if (axis < 'x' || axis > 'z')
                return;
            source->kind = kind;
            source->index = static_cast<std::uint32_t>(axis - 'x');
        }
        if (name == "%laneid")
            source->kind = Kind::lane;
        if (name == "WARP_SZ") {
            source->kind = Kind::number;
            source->number += 32;
        }
    }

    void add_result(const Operand &operand) {
        program_.results.push_back(operand.kind == Operand::Kind::reg ? operand.index : Step::none);
    }

    // Adds an operand, or the elements of a vector. Returns the number of the added operands.
    std::uint32_t add_results(const Operand &operand) {
        if (operand.kind != Operand::Kind::vector)
            return add_result(operand), 1;
        for (std::uint32_t element = 0; element < operand.count; ++element)
            add_result(entry_.elements[operand.index + element]);
        return operand.count;
    }

    std::uint32_t add_sources(const Operand &operand) {
        if (operand.kind != Operand::Kind::vector)
            return program_.sources.push_back(source_of(operand)), 1;
        for (std::uint32_t element = 0; element < operand.count; ++element)
            program_.sources.push_back(source_of(entry_.elements[operand.index + element]));
        return operand.count;
    }

    void add(const Instruction &instruction) {
        const Operation &operation = module_.operations[instruction.operation];
        Step step = step_of(module_.opcodes[instruction.operation], operation);
        step.is_guarded = instruction.is_guarded;
        step.guard = source_of(instruction.guard);
        step.first_result = static_cast<std::uint32_t>(program_.results.size());
        step.first_source = static_cast<std::uint32_t>(program_.sources.size());
        if (step.action == Action::branch)
            step.target = instruction.label == no_label ? Step::none : entry_.labels[instruction.label];
        if (operation.act == Act::call) {
            add_call(instruction, &step);
        } else {
            const Operand *address = nullptr;
            for (std::uint32_t at = 0; at < instruction.count; ++at) {
                const Operand &operand = entry_.operands[instruction.first + at];
                if (operand.is_address)
                    address = &operand; // of a copy: the second address
                else if (at < instruction.results)
                    step.results += add_results(operand);
                else if (const auto added = add_sources(operand); (step.sources += added) == added)
                    step.elements = static_cast<std::uint8_t>(added);
            }
            if (step.action == Action::load)
                step.elements = static_cast<std::uint8_t>(step.results);
            if (address != nullptr)
                step.address = source_of(*address);
            complete(instruction, &step);
        }
        program_.steps.push_back(step);
    }

    // Takes the action back if the instruction has an unexpected form.
    static void complete(const Instruction &instruction, Step *step) {
        const auto expected = [step]() -> std::pair<std::uint32_t, std::uint32_t> { // the least and the most sources
            switch (step->action) {
            case Action::move:
            case Action::absolute:
            case Action::opposite:
            case Action::complement:
            case Action::convert:
                return {1, 1};
            case Action::add:
            case Action::subtract:
            case Action::divide:
            case Action::remainder:
            case Action::least:
            case Action::most:
            case Action::conjunction:
            case Action::disjunction:
            case Action::exclusive:
            case Action::shift_left:
            case Action::shift_right:
                return {2, 2};
            case Action::multiply:
            case Action::multiply_high:
            case Action::multiply_wide:
                return step->adds ? std::pair(3u, 3u) : std::pair(2u, 2u);
            case Action::choose:
            case Action::extract:
                return {3, 3};
            case Action::compare:
                return step->joint == Joint::none ? std::pair(2u, 2u) : std::pair(3u, 3u);
            case Action::combine:
                return {4, 4};
            default:
                return {0, Step::none};
            }
        }();
        const bool is_vector = step->results > instruction.results;
        if (step->action == Action::move && (step->sources != 1 || is_vector)) {
            step->action = (step->results == 1 && step->sources > 1) || (step->results > 1 && step->sources == 1)
                               ? Action::pack
                               : Action::forget;
            return;
        }
        if (step->sources < expected.first || step->sources > expected.second)
            step->action = Action::forget;
        if (step->action == Action::copy && step->sources != 1) { // the copy may leave bytes out
            step->action = Action::load;
            step->is_strong = true;
        }
    }

    void add_call(const Instruction &instruction, Step *step) {
        for (std::uint32_t at = 0; at < instruction.results; ++at)
            step->results += add_results(entry_.operands[instruction.first + at]);
        const bool is_safe =
            instruction.is_direct &&
            comes_back(module_, entry_.names[entry_.operands[instruction.first + instruction.results].index], 0);
        step->action = is_safe ? Action::call : Action::lose;
    }

    const Module &module_;
    const Function &entry_;
    Program &program_;
    std::vector<std::uint64_t> places_; // of the variables; 0 for a variable that has no place here
};

// Finds the blocks, and where the ways from each block come together again.
class BlockFinder {
public:
    explicit BlockFinder(Program &program) : program_(program) {}

    void find() {
        find_blocks();
        find_joins();
    }

private:
    void find_blocks() {
        const auto size = static_cast<std::uint32_t>(program_.steps.size());
        std::vector<bool> begins(size + 1);
        begins[0] = true;
        for (std::uint32_t place = 0; place < size; ++place) {
            const Step &step = program_.steps[place];
            if (!step.ends_block())
                continue;
            begins[place + 1] = true;
            if (step.target <= size)
                begins[step.target] = true;
        }
        for (std::uint32_t place = 0; place < size; ++place) {
            if (begins[place])
                program_.blocks.push_back({place, place, {Step::none, Step::none}, Step::none});
            program_.blocks.back().end = place + 1;
            program_.block_of.push_back(static_cast<std::uint32_t>(program_.blocks.size() - 1));
        }
        for (std::uint32_t number = 0; number < program_.blocks.size(); ++number)
            find_next(number);
    }

    std::uint32_t end() const { return static_cast<std::uint32_t>(program_.blocks.size()); }
    std::uint32_t block_at(std::uint32_t step) const {
        return step < program_.block_of.size() ? program_.block_of[step] : end();
    }

    // After a step that loses the thread, the thread may end or go on.
    void find_next(std::uint32_t number) {
        Program::Block &block = program_.blocks[number];
        const Step &last = program_.steps[block.end - 1];
        if (!last.ends_block()) {
            block.next[0] = block_at(block.end);
            return;
        }
        const bool is_branch = last.action == Action::branch && last.target != Step::none;
        block.next[0] = is_branch ? block_at(last.target) : end();
        if (last.is_guarded || last.action == Action::lose)
            block.next[1] = block_at(block.end);
    }

    // The immediate postdominators: in the graph with all edges turned round, the dominators from the end on.
    void find_joins() {
        const std::uint32_t count = end() + 1;
        std::vector<std::vector<std::uint32_t>> before(count);
        for (std::uint32_t number = 0; number < end(); ++number)
            for (const auto next : program_.blocks[number].next)
                if (next != Step::none)
                    before[next].push_back(number);
        const auto [order, rank] = order_from_end(before);
        std::vector<std::uint32_t> joins(count, Step::none);
        joins[end()] = end();
        const auto common = [&, &rank = rank](std::uint32_t left, std::uint32_t right) {
            while (left != right) {
                while (rank[left] > rank[right])
                    left = joins[left];
                while (rank[right] > rank[left])
                    right = joins[right];
            }
            return left;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto number : order) {
                std::uint32_t join = Step::none;
                for (const auto next : program_.blocks[number].next)
                    if (next != Step::none && joins[next] != Step::none)
                        join = join == Step::none ? next : common(join, next);
                if (joins[number] != join) {
                    joins[number] = join;
                    changed = true;
                }
            }
        }
        for (std::uint32_t number = 0; number < end(); ++number)
            program_.blocks[number].joins = joins[number];
    }

    // The blocks from which the end can be reached, later blocks first, and the place of each in this order.
    std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>
    order_from_end(const std::vector<std::vector<std::uint32_t>> &before) const {
        std::vector<std::uint32_t> order, rank(before.size(), 0), at(before.size(), 0), open(1, end());
        std::vector<bool> seen(before.size());
        seen[end()] = true;
        while (!open.empty()) {
            const std::uint32_t number = open.back();
            if (at[number] == before[number].size()) {
                open.pop_back();
                order.push_back(number);
                continue;
            }
            const std::uint32_t other = before[number][at[number]++];
            if (!seen[other]) {
                seen[other] = true;
                open.push_back(other);
            }
        }
        std::reverse(order.begin(), order.end());
        for (std::uint32_t place = 0; place < order.size(); ++place)
            rank[order[place]] = place;
        order.erase(order.begin());
        return {order, rank};
    }

    Program &program_;
};

} // namespace

std::shared_ptr<const Program> program_of(const Module &module, const Function &entry) {
    if (entry.instructions.empty() || entry.instructions.size() > most_instructions || entry.has_vector_registers)
        return nullptr;
    auto program = std::make_shared<Program>();
    Compiler(module, entry, *program).compile();
    BlockFinder(*program).find();
    return program;
}

} // namespace tcuda::kernel_uses::ptx
