#include "sanitizer/_cpp/kernel_uses/ptx_declarations.hpp"

#include <algorithm>
#include <string_view>

namespace tcuda::kernel_uses::ptx {
namespace {

constexpr std::size_t most_bytes = std::size_t(1) << 40; // a larger variable is not one of a real module

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

} // namespace

void DeclarationReader::read_variables(Function *function) {
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
            scopes_.declare_variable(*function, one);
        }
    } while (tokens_.take(','));
    tokens_.skip_statement();
}

std::size_t DeclarationReader::read_type(Variable &variable) {
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

void DeclarationReader::read_name(Variable &variable, std::size_t element) {
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

std::vector<std::uint32_t> DeclarationReader::read_arguments(Function &function, Storage storage) {
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
                variable.size = scopes_.declare_register(function, variable.name);
                function.variables.push_back(variable);
            } else {
                scopes_.declare_variable(function, variable);
            }
        }
        if (!tokens_.take(',') && !tokens_.is(')'))
            tokens_.next();
    }
    tokens_.take(')');
    return arguments;
}

void DeclarationReader::read_registers(Function &function) {
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
            scopes_.declare_registers(name);
        } else {
            scopes_.declare_register(function, name);
        }
    } while (tokens_.take(','));
    tokens_.skip_statement();
}

} // namespace tcuda::kernel_uses::ptx
