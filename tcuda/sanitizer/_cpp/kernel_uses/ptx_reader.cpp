#include "sanitizer/_cpp/kernel_uses/ptx_reader.hpp"

#include <algorithm>
#include <utility>

#include "sanitizer/_cpp/kernel_uses/ptx_declarations.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_operands.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_scopes.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_tokens.hpp"
#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr std::size_t most_depth = 256; // of blocks; a real module has fewer

class Reader {
public:
    Reader(std::string_view text, Module &module)
        : tokens_(text), module_(module), scopes_(module), declarations_(tokens_, module, scopes_),
          operands_(tokens_, scopes_) {}

    void read() {
        while (!tokens_.at_end())
            read_item();
    }

private:
    void read_item() {
        if (tokens_.is(".entry") || tokens_.is(".func"))
            return read_function();
        if (tokens_.is(".global") || tokens_.is(".const") || tokens_.is(".shared") || tokens_.is(".tex"))
            return declarations_.read_variables(nullptr);
        if (tokens_.is(".section")) {
            while (!tokens_.at_end() && !tokens_.is('{'))
                tokens_.next();
            return tokens_.skip_group();
        }
        if (tokens_.is(".version") || tokens_.is(".target") || tokens_.is(".address_size") || tokens_.is(".file") ||
            tokens_.is(".loc"))
            return tokens_.skip_line();
        if (tokens_.is('{') || tokens_.is('('))
            return tokens_.skip_group();
        tokens_.next();
    }

    // Reads `.func (.param .b32 r) f (.param .b64 a, .reg .u32 %b) ... { ... }` or such a declaration.
    void read_function() {
        Function function;
        function.is_entry = tokens_.is(".entry");
        tokens_.next();
        scopes_.begin_function();
        while (tokens_.is_directive()) { // .attribute, .noreturn
            tokens_.next();
            if (tokens_.is('('))
                tokens_.skip_group();
        }
        if (tokens_.is('('))
            function.results = declarations_.read_arguments(function, Storage::result);
        function.name = tokens_.current();
        tokens_.next();
        if (tokens_.is('('))
            function.arguments = declarations_.read_arguments(function, Storage::argument);
        if (function.is_entry)
            place_arguments(function);
        while (!tokens_.at_end() && !tokens_.is('{') && !tokens_.is(';') && !tokens_.is(".entry") &&
               !tokens_.is(".func"))
            tokens_.next(); // directives of performance
        if (tokens_.is('{')) {
            if (!read_body(function))
                return;
            function.has_body = true;
        } else {
            tokens_.take(';');
        }
        add_function(std::move(function));
    }

    void add_function(Function function) {
        const auto name = function.name;
        const auto found = module_.functions_by_name.find(name);
        if (found == module_.functions_by_name.end()) {
            module_.functions_by_name[name] = static_cast<std::uint32_t>(module_.functions.size());
            module_.functions.push_back(std::move(function));
        } else if (function.has_body && !module_.functions[found->second].has_body) {
            module_.functions[found->second] = std::move(function);
        }
    }

    static void place_arguments(Function &function) {
        std::size_t offset = 0;
        for (const auto argument : function.arguments) {
            Variable &variable = function.variables[argument];
            offset = (offset + variable.alignment - 1) / variable.alignment * variable.alignment;
            variable.offset = offset;
            offset += variable.is_register ? 8 : variable.size;
        }
    }

    // False if the text ends before the body.
    bool read_body(Function &function) {
        std::vector<std::pair<std::string_view, std::uint32_t>> labels;
        std::vector<std::string_view> targets;
        std::size_t depth = 0;
        labels_.clear();
        do {
            if (tokens_.is('{')) {
                if (++depth > most_depth)
                    return false;
                scopes_.begin_block();
                tokens_.next();
            } else if (tokens_.is('}')) {
                --depth;
                scopes_.end_block();
                if (depth > 0)
                    tokens_.next();
            } else {
                read_statement(function, labels, targets);
            }
        } while (depth > 0 && !tokens_.at_end());
        if (depth > 0)
            return false;
        tokens_.next();
        mark_targets(function, labels, targets);
        place_labels(function, labels);
        return true;
    }

    // Two blocks may have a label of the same name. Such labels have no known place.
    void place_labels(Function &function, const std::vector<std::pair<std::string_view, std::uint32_t>> &labels) {
        function.labels.assign(labels_.size(), no_label);
        std::vector<bool> is_placed(labels_.size());
        for (const auto &[name, place] : labels)
            if (const auto known = labels_.find(name); known != labels_.end()) {
                function.labels[known->second] = is_placed[known->second] ? no_label : place;
                is_placed[known->second] = true;
            }
    }

    std::uint32_t number_of_label(std::string_view name) {
        return labels_.emplace(name, static_cast<std::uint32_t>(labels_.size())).first->second;
    }

    // Only labels to which a branch may go count: a text with line numbers has many more.
    static void mark_targets(Function &function, const std::vector<std::pair<std::string_view, std::uint32_t>> &labels,
                             std::vector<std::string_view> &targets) {
        std::sort(targets.begin(), targets.end());
        for (const auto &[name, place] : labels)
            if (place < function.instructions.size() && std::binary_search(targets.begin(), targets.end(), name))
                function.instructions[place].is_label = true;
    }

    void read_statement(Function &function, std::vector<std::pair<std::string_view, std::uint32_t>> &labels,
                        std::vector<std::string_view> &targets) {
        if (tokens_.is(".reg"))
            return declarations_.read_registers(function);
        if (tokens_.is(".local") || tokens_.is(".shared") || tokens_.is(".param") || tokens_.is(".global") ||
            tokens_.is(".const"))
            return declarations_.read_variables(&function);
        if (tokens_.is(".loc") || tokens_.is(".file"))
            return tokens_.skip_line();
        if (tokens_.is(".section")) {
            while (!tokens_.at_end() && !tokens_.is('{') && !tokens_.is(';') && !tokens_.is('}'))
                tokens_.next();
            if (tokens_.is('{'))
                tokens_.skip_group();
            return;
        }
        if (tokens_.is(".branchtargets")) {
            while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is('}')) {
                targets.push_back(tokens_.current());
                tokens_.next();
            }
            return tokens_.skip_statement();
        }
        if (tokens_.is_directive())
            return tokens_.skip_statement();
        if (tokens_.take(';'))
            return;
        Instruction instruction;
        if (tokens_.take('@')) {
            instruction.guard = operands_.read_operand(function);
            instruction.is_guarded = true;
        }
        const auto opcode = tokens_.current();
        tokens_.next();
        if (!instruction.is_guarded && tokens_.take(':')) {
            labels.emplace_back(opcode, static_cast<std::uint32_t>(function.instructions.size()));
            return;
        }
        read_instruction(function, opcode, instruction, targets);
    }

    std::uint32_t operation_of_opcode(std::string_view opcode) {
        const auto [found, is_new] = operations_.emplace(opcode, static_cast<std::uint32_t>(module_.operations.size()));
        if (is_new) {
            module_.operations.push_back(operation_of(opcode));
            module_.opcodes.push_back(opcode);
        }
        return found->second;
    }

    void read_instruction(Function &function, std::string_view opcode, Instruction instruction,
                          std::vector<std::string_view> &targets) {
        instruction.operation = operation_of_opcode(opcode);
        const Operation &operation = module_.operations[instruction.operation];
        std::vector<Operand> &operands = read_operands_;
        operands.clear();
        if (operation.act == Act::call) {
            read_call(function, instruction, operands);
        } else if (operation.act == Act::branch) {
            if (starts_with(opcode, "bra"))
                instruction.label = number_of_label(tokens_.current());
            while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is('}')) {
                targets.push_back(tokens_.current());
                tokens_.next();
            }
        } else {
            while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is('}')) {
                const auto before = tokens_.current().data();
                operands.push_back(operands_.read_operand(function));
                if (tokens_.take('|')) { // a second result
                    operands.push_back(operands_.read_operand(function));
                    instruction.results = 1;
                }
                tokens_.take(',');
                if (tokens_.current().data() == before)
                    tokens_.next();
            }
            const bool has_result = !operands.empty() && !operands[0].is_address && operation.act != Act::nothing &&
                                    operation.act != Act::store && operation.act != Act::reduce &&
                                    operation.act != Act::copy && operation.act != Act::map;
            instruction.results += has_result;
        }
        tokens_.skip_statement();
        instruction.first = static_cast<std::uint32_t>(function.operands.size());
        instruction.count = static_cast<std::uint32_t>(operands.size());
        instruction.results = std::min(instruction.results, instruction.count);
        function.operands.insert(function.operands.end(), operands.begin(), operands.end());
        function.instructions.push_back(instruction);
    }

    // `call (result), function, (arguments), prototype;`: the results, the function, the arguments.
    void read_call(Function &function, Instruction &instruction, std::vector<Operand> &operands) {
        if (tokens_.is('(')) {
            operands_.read_list(function, operands);
            tokens_.take(',');
        }
        instruction.results = static_cast<std::uint32_t>(operands.size());
        operands.push_back(operands_.read_operand(function));
        instruction.is_direct = operands.back().kind == Operand::Kind::name;
        if (tokens_.take(',') && tokens_.is('('))
            operands_.read_list(function, operands);
    }

    Tokens tokens_;
    Module &module_;
    Scopes scopes_;
    DeclarationReader declarations_;
    OperandReader operands_;
    std::unordered_map<std::string_view, std::uint32_t> operations_;
    std::vector<Operand> read_operands_; // of one instruction
    std::unordered_map<std::string_view, std::uint32_t> labels_; // the numbers of the labels of a function
};

} // namespace

Module read_module(std::string_view text) {
    Module module;
    Reader(text, module).read();
    return module;
}

} // namespace tcuda::kernel_uses::ptx
