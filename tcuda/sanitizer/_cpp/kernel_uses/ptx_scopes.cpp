#include "sanitizer/_cpp/kernel_uses/ptx_scopes.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

bool is_digit(char sign) { return sign >= '0' && sign <= '9'; }

// A new register of the function.
Operand register_of(Function &function) {
    Operand operand;
    operand.kind = Operand::Kind::reg;
    operand.index = function.registers++;
    return operand;
}

} // namespace

void Scopes::declare_variable(Function &function, const Variable &variable) {
    Operand operand;
    operand.kind = Operand::Kind::variable;
    operand.index = static_cast<std::uint32_t>(function.variables.size());
    function.variables.push_back(variable);
    scopes_.back().names[variable.name] = operand;
}

std::uint32_t Scopes::declare_register(Function &function, std::string_view name) {
    const Operand operand = register_of(function);
    scopes_.back().names[name] = operand;
    return operand.index;
}

Operand Scopes::resolved(Function &function, std::string_view word) {
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
            const Operand operand = register_of(function);
            scope->names.emplace(word, operand);
            return operand;
        }
    }
    // `%v.x` is an element of a register that is a vector.
    const auto point = word.find('.');
    if (point != word.npos && point > 0) {
        const auto vector = scopes_.back().names.find(word.substr(0, point));
        if (vector != scopes_.back().names.end()) {
            function.has_vector_registers = true;
            return vector->second;
        }
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

} // namespace tcuda::kernel_uses::ptx
