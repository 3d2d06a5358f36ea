#include "kernel_uses/ptx_reader.hpp"

#include <algorithm>
#include <utility>

#include "kernel_uses/ptx_tokens.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

// Sizes beyond these are not those of a real module.
constexpr std::size_t most_bytes = std::size_t(1) << 40;
constexpr std::size_t most_depth = 256;

std::size_t size_of_type(std::string_view type) {
    const auto is = [&](const char *name) { return type == name; };
    if (is(".b8") || is(".u8") || is(".s8") || is(".pred"))
        return 1;
    if (is(".b16") || is(".u16") || is(".s16") || is(".f16") || is(".bf16"))
        return 2;
    if (is(".b32") || is(".u32") || is(".s32") || is(".f32") || is(".f16x2") || is(".bf16x2"))
        return 4;
    if (is(".b64") || is(".u64") || is(".s64") || is(".f64") || is(".texref") || is(".samplerref") || is(".surfref"))
        return 8;
    return is(".b128") ? 16 : 0;
}

bool is_digit(char sign) { return sign >= '0' && sign <= '9'; }

// The names that a block of a function declares.
struct Scope {
    std::unordered_map<std::string_view, Operand> names;
    std::unordered_map<std::string_view, std::uint32_t> families; // `%r` of `.reg .b32 %r<5>` and a number for it
};

class Reader {
public:
    Reader(std::string_view text, Module &module) : tokens_(text), module_(module) {}

    void read() {
        while (!tokens_.at_end())
            read_item();
    }

private:
    void read_item() {
        if (tokens_.is(".entry") || tokens_.is(".func"))
            return read_function();
        if (tokens_.is(".global") || tokens_.is(".const") || tokens_.is(".shared") || tokens_.is(".tex"))
            return read_variables(nullptr);
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

    // Reads `.global .align 8 .b8 a[24] = {...}, b;` and adds the variables to the function, or to the module.
    void read_variables(Function *function) {
        Variable variable;
        const auto storage = tokens_.current();
        variable.storage = storage == ".const"    ? Storage::constant
                           : storage == ".shared" ? Storage::shared
                           : storage == ".local"  ? Storage::local
                           : storage == ".param"  ? Storage::parameter
                                                  : Storage::global;
        tokens_.next();
        std::size_t element = read_type(variable);
        do {
            Variable one = variable;
            read_name(one, element);
            if (tokens_.take('=')) // an initial value
                while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is(','))
                    tokens_.skip_group();
            if (one.name.empty())
                break;
            if (function == nullptr || one.storage == Storage::global || one.storage == Storage::constant) {
                module_.variables_by_name[one.name] = static_cast<std::uint32_t>(module_.variables.size());
                module_.variables.push_back(one);
            } else {
                declare_variable(*function, one);
            }
        } while (tokens_.take(','));
        skip_statement();
    }

    // Reads the directives before the name of a variable. Returns the size of an element.
    std::size_t read_type(Variable &variable) {
        std::size_t element = 0, lanes = 1;
        while (tokens_.is_directive()) {
            const auto word = tokens_.current();
            tokens_.next();
            if (word == ".align") {
                std::int64_t alignment = 0;
                const bool is_of_pointer = variable.is_pointer; // the alignment of the memory behind the pointer
                if (integer_of(tokens_.current(), alignment)) {
                    tokens_.next();
                    if (!is_of_pointer && alignment > 0 && alignment <= 4096)
                        variable.alignment = static_cast<std::size_t>(alignment);
                }
            } else if (word == ".ptr") {
                variable.is_pointer = true;
            } else if (word == ".attribute" && tokens_.is('(')) {
                tokens_.skip_group();
            } else if (word == ".v2" || word == ".v4") {
                lanes = word == ".v2" ? 2 : 4;
            } else if (const std::size_t size = size_of_type(word)) {
                element = size;
            }
        }
        return element * lanes;
    }

    // Reads a name with its dimensions.
    void read_name(Variable &variable, std::size_t element) {
        if (tokens_.is(';') || tokens_.is(',') || tokens_.is(')') || tokens_.is('{') || tokens_.is('}'))
            return;
        variable.name = tokens_.current();
        tokens_.next();
        variable.size = element;
        variable.alignment = std::max(variable.alignment, std::max<std::size_t>(element, 1));
        while (tokens_.take('[')) {
            std::int64_t length = 0;
            if (integer_of(tokens_.current(), length)) {
                tokens_.next();
                const bool is_sane = length > 0 && std::size_t(length) < most_bytes / (variable.size + 1);
                variable.size = is_sane ? variable.size * std::size_t(length) : 0;
            } else {
                variable.size = 0;
            }
            while (!tokens_.at_end() && !tokens_.take(']') && !tokens_.is(';'))
                tokens_.next();
        }
    }

    void skip_statement() {
        while (!tokens_.at_end() && !tokens_.is('}') && !tokens_.take(';'))
            tokens_.next();
    }

    void declare_variable(Function &function, const Variable &variable) {
        Operand operand;
        operand.kind = Operand::Kind::variable;
        operand.index = static_cast<std::uint32_t>(function.variables.size());
        function.variables.push_back(variable);
        scopes_.back().names[variable.name] = operand;
    }

    // Reads `.func (.param .b32 r) f (.param .b64 a, .reg .u32 %b) ... { ... }` or such a declaration.
    void read_function() {
        Function function;
        function.is_entry = tokens_.is(".entry");
        tokens_.next();
        scopes_.assign(1, Scope());
        families_ = 0;
        while (tokens_.is_directive()) { // .attribute, .noreturn
            tokens_.next();
            if (tokens_.is('('))
                tokens_.skip_group();
        }
        if (tokens_.is('('))
            function.results = read_arguments(function, Storage::result);
        function.name = tokens_.current();
        tokens_.next();
        if (tokens_.is('('))
            function.arguments = read_arguments(function, Storage::argument);
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

    std::vector<std::uint32_t> read_arguments(Function &function, Storage storage) {
        std::vector<std::uint32_t> arguments;
        tokens_.take('(');
        while (!tokens_.at_end() && !tokens_.is(')') && !tokens_.is('{') && !tokens_.is(';')) {
            Variable variable;
            variable.storage = storage;
            variable.is_register = tokens_.is(".reg");
            const std::size_t element = read_type(variable);
            read_name(variable, element);
            if (!variable.name.empty()) {
                arguments.push_back(static_cast<std::uint32_t>(function.variables.size()));
                if (variable.is_register) {
                    Operand operand;
                    operand.kind = Operand::Kind::reg;
                    operand.index = function.registers++;
                    variable.size = operand.index;
                    scopes_.back().names[variable.name] = operand;
                    function.variables.push_back(variable);
                } else {
                    declare_variable(function, variable);
                }
            }
            if (!tokens_.take(',') && !tokens_.is(')'))
                tokens_.next();
        }
        tokens_.take(')');
        return arguments;
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
        do {
            if (tokens_.is('{')) {
                if (++depth > most_depth)
                    return false;
                scopes_.emplace_back();
                tokens_.next();
            } else if (tokens_.is('}')) {
                --depth;
                scopes_.pop_back();
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
        return true;
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
            return read_registers(function);
        if (tokens_.is(".local") || tokens_.is(".shared") || tokens_.is(".param") || tokens_.is(".global") ||
            tokens_.is(".const"))
            return read_variables(&function);
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
            return skip_statement();
        }
        if (tokens_.is_directive())
            return skip_statement();
        if (tokens_.take(';'))
            return;
        bool has_guard = false;
        if (tokens_.take('@')) {
            tokens_.take('!');
            tokens_.next();
            has_guard = true;
        }
        const auto opcode = tokens_.current();
        tokens_.next();
        if (!has_guard && tokens_.take(':')) {
            labels.emplace_back(opcode, static_cast<std::uint32_t>(function.instructions.size()));
            return;
        }
        read_instruction(function, opcode, has_guard, targets);
    }

    void read_registers(Function &function) {
        tokens_.next();
        while (tokens_.is_directive())
            tokens_.next();
        do {
            const auto name = tokens_.current();
            if (tokens_.at_end() || tokens_.is(';') || tokens_.is('}'))
                break;
            tokens_.next();
            if (tokens_.take('<')) {
                tokens_.next();
                tokens_.take('>');
                scopes_.back().families.emplace(name, families_++);
            } else {
                Operand operand;
                operand.kind = Operand::Kind::reg;
                operand.index = function.registers++;
                scopes_.back().names[name] = operand;
            }
        } while (tokens_.take(','));
        skip_statement();
    }

    std::uint32_t operation_of_opcode(std::string_view opcode) {
        const auto [found, is_new] =
            operations_.emplace(opcode, static_cast<std::uint32_t>(module_.operations.size()));
        if (is_new)
            module_.operations.push_back(operation_of(opcode));
        return found->second;
    }

    void read_instruction(Function &function, std::string_view opcode, bool is_guarded,
                          std::vector<std::string_view> &targets) {
        Instruction instruction;
        instruction.is_guarded = is_guarded;
        instruction.operation = operation_of_opcode(opcode);
        const Operation &operation = module_.operations[instruction.operation];
        std::vector<Operand> &operands = operands_;
        operands.clear();
        if (operation.act == Act::call) {
            read_call(function, instruction, operands);
        } else if (operation.act == Act::branch) {
            while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is('}')) {
                targets.push_back(tokens_.current());
                tokens_.next();
            }
        } else {
            while (!tokens_.at_end() && !tokens_.is(';') && !tokens_.is('}')) {
                const auto before = tokens_.current().data();
                operands.push_back(read_operand(function));
                if (tokens_.take('|')) { // a second result
                    operands.push_back(read_operand(function));
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
        skip_statement();
        instruction.first = static_cast<std::uint32_t>(function.operands.size());
        instruction.count = static_cast<std::uint32_t>(operands.size());
        instruction.results = std::min(instruction.results, instruction.count);
        function.operands.insert(function.operands.end(), operands.begin(), operands.end());
        function.instructions.push_back(instruction);
    }

    // `call (result), function, (arguments), prototype;`: the results, the function, the arguments.
    void read_call(Function &function, Instruction &instruction, std::vector<Operand> &operands) {
        if (tokens_.is('(')) {
            read_list(function, operands);
            tokens_.take(',');
        }
        instruction.results = static_cast<std::uint32_t>(operands.size());
        operands.push_back(read_operand(function));
        instruction.is_direct = operands.back().kind == Operand::Kind::name;
        if (tokens_.take(',') && tokens_.is('('))
            read_list(function, operands);
    }

    void read_list(Function &function, std::vector<Operand> &operands) {
        tokens_.take('(');
        while (!tokens_.at_end() && !tokens_.is(')') && !tokens_.is(';') && !tokens_.is('}')) {
            operands.push_back(read_operand(function));
            if (!tokens_.take(',') && !tokens_.is(')'))
                tokens_.next();
        }
        tokens_.take(')');
    }

    Operand read_operand(Function &function, std::size_t depth = 0) {
        Operand operand;
        tokens_.take('!');
        if (depth > 4) {
            tokens_.next();
            return operand;
        }
        if (tokens_.is('{'))
            return read_vector(function, depth);
        if (tokens_.take('[')) {
            operand = read_sum(function);
            operand.is_address = true;
            while (!tokens_.at_end() && !tokens_.is(']') && !tokens_.is(';') && !tokens_.is('}')) {
                if (tokens_.is('{'))
                    tokens_.skip_group(); // coordinates
                else
                    tokens_.next();
            }
            tokens_.take(']');
            return operand;
        }
        return read_sum(function);
    }

    Operand read_vector(Function &function, std::size_t depth) {
        Operand operand;
        operand.kind = Operand::Kind::vector;
        std::vector<Operand> elements;
        tokens_.take('{');
        while (!tokens_.at_end() && !tokens_.is('}') && !tokens_.is(';')) {
            elements.push_back(read_operand(function, depth + 1));
            if (!tokens_.take(',') && !tokens_.is('}') && !tokens_.is(';'))
                tokens_.next();
        }
        tokens_.take('}');
        operand.index = static_cast<std::uint32_t>(function.elements.size());
        operand.count = static_cast<std::uint32_t>(elements.size());
        function.elements.insert(function.elements.end(), elements.begin(), elements.end());
        return operand;
    }

    // A register, a variable, a name or a number, and an offset.
    Operand read_sum(Function &function) {
        bool is_negative = tokens_.take('-');
        if (tokens_.is("generic")) { // the generic address of a variable
            tokens_.next();
            if (tokens_.take('(')) {
                Operand operand = read_sum(function);
                tokens_.take(')');
                return operand;
            }
        }
        Operand operand;
        std::int64_t number = 0;
        if (integer_of(tokens_.current(), number)) {
            operand.kind = Operand::Kind::number;
            operand.offset = is_negative ? negated(number) : number;
            tokens_.next();
        } else if (is_word(tokens_.current())) {
            operand = resolved(function, tokens_.current());
            tokens_.next();
        } else {
            return operand; // the caller goes on behind a sign that fits nowhere
        }
        while (tokens_.is('+') || tokens_.is('-')) {
            is_negative = tokens_.is('-');
            tokens_.next();
            if (tokens_.take('-'))
                is_negative = !is_negative;
            if (!integer_of(tokens_.current(), number))
                break;
            tokens_.next();
            operand.offset = added(operand.offset, is_negative ? negated(number) : number);
        }
        return operand;
    }

    static std::int64_t added(std::int64_t left, std::int64_t right) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
    }

    static std::int64_t negated(std::int64_t number) {
        return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number));
    }

    static bool is_word(std::string_view word) {
        const auto is_letter = [](char sign) {
            return (sign >= 'A' && sign <= 'Z') || (sign >= 'a' && sign <= 'z') || sign == '_';
        };
        return word.size() > 1 || (word.size() == 1 && is_letter(word[0]));
    }

    Operand resolved(Function &function, std::string_view word) {
        if (word == "_")
            return Operand();
        auto stem = word;
        while (!stem.empty() && is_digit(stem.back()))
            stem.remove_suffix(1);
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
            const auto found = scope->names.find(word);
            if (found != scope->names.end())
                return found->second;
            if (stem.size() < word.size() && scope->families.count(stem) != 0) {
                Operand operand;
                operand.kind = Operand::Kind::reg;
                operand.index = function.registers++;
                scope->names.emplace(word, operand);
                return operand;
            }
        }
        // `%v.x` is an element of a register that is a vector.
        const auto point = word.find('.');
        if (point != word.npos && point > 0) {
            const auto vector = scopes_.back().names.find(word.substr(0, point));
            if (vector != scopes_.back().names.end())
                return vector->second;
        }
        Operand operand;
        if (const auto found = module_.variables_by_name.find(word); found != module_.variables_by_name.end()) {
            operand.kind = Operand::Kind::module_variable;
            operand.index = found->second;
            return operand;
        }
        operand.kind = Operand::Kind::name;
        operand.index = static_cast<std::uint32_t>(function.names.size());
        function.names.push_back(word);
        return operand;
    }

    Tokens tokens_;
    Module &module_;
    std::vector<Scope> scopes_;
    std::uint32_t families_ = 0;
    std::unordered_map<std::string_view, std::uint32_t> operations_;
    std::vector<Operand> operands_;
};

} // namespace

Module read_module(std::string_view text) {
    Module module;
    Reader(text, module).read();
    return module;
}

} // namespace tcuda::kernel_uses::ptx
