// A PTX module as it was read: its functions with their variables and instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_operation.hpp"

namespace tcuda::kernel_uses::ptx {

enum class Storage : std::uint8_t { argument, result, parameter, local, shared, global, constant };

struct Variable {
    std::string_view name;
    Storage storage = Storage::global;
    std::size_t size = 0, alignment = 1;
    std::size_t offset = 0;   // of an argument of a kernel: in the parameter block
    bool is_pointer = false;  // the text says that the argument is a pointer
    bool is_register = false; // an argument or a result of a function that is a register with the number `size`
};

struct Operand {
    enum class Kind : std::uint8_t {
        number,
        reg,             // `index` is the number of a register of the function
        variable,        // `index` is the number of a variable of the function
        module_variable, // `index` is the number of a variable of the module
        name,            // a function, a label or a register of the hardware: `index` is the number of a name
        vector,          // `index` is the first of `count` operands of the function
        none,            // `_`
    };
    Kind kind = Kind::none;
    bool is_address = false; // in brackets
    bool is_negated = false; // a predicate behind `!`
    std::uint32_t index = 0, count = 0;
    std::int64_t offset = 0; // or the number
};

constexpr std::uint32_t no_label = ~std::uint32_t(0);

struct Instruction {
    std::uint32_t operation = 0;          // a number of Module::operations
    std::uint32_t first = 0, count = 0;   // operands of the function
    std::uint32_t results = 0;            // how many of the operands, from the first, are results
    bool is_label = false;                // a place to which a branch may go
    bool is_guarded = false;              // a predicate may leave it out
    Operand guard;                        // the predicate
    std::uint32_t label = no_label;       // a branch to one place: the number of the label
    bool is_direct = false;               // a call: whether the operand `results` names the function
};

struct Function {
    std::string_view name;
    bool is_entry = false, has_body = false;
    std::vector<std::uint32_t> arguments, results; // variables
    std::vector<Variable> variables;
    std::vector<Instruction> instructions;
    std::vector<Operand> operands, elements; // elements of vectors
    std::vector<std::string_view> names;     // to which operands refer
    std::vector<std::uint32_t> labels;       // the places of the labels to which branches go; no_label if unknown
    std::uint32_t registers = 0;
    bool has_vector_registers = false; // with elements such as `%v.x`, which are not told apart
};

// The operand with this number of those in brackets; null if there are fewer.
inline const Operand *address_of(const Function &function, const Instruction &instruction, unsigned which) {
    for (std::uint32_t at = 0; at < instruction.count; ++at) {
        const Operand &operand = function.operands[instruction.first + at];
        if (operand.is_address && which-- == 0)
            return &operand;
    }
    return nullptr;
}

struct Module {
    std::deque<Function> functions;
    std::unordered_map<std::string_view, std::uint32_t> functions_by_name;
    std::vector<Variable> variables;
    std::unordered_map<std::string_view, std::uint32_t> variables_by_name;
    std::vector<Operation> operations;
    std::vector<std::string_view> opcodes; // of the operations
};

} // namespace tcuda::kernel_uses::ptx
