// The declarations of a PTX text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_scopes.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_tokens.hpp"

namespace tcuda::kernel_uses::ptx {

// Reads declarations of variables, registers and arguments.
class DeclarationReader {
public:
    DeclarationReader(Tokens &tokens, Module &module, Scopes &scopes)
        : tokens_(tokens), module_(module), scopes_(scopes) {}

    // Reads `.global .align 8 .b8 a[24] = {...}, b;` and adds the variables to the function, or to the module.
    void read_variables(Function *function);
    void read_registers(Function &function);
    // Reads the arguments or the results of a function, in parentheses.
    std::vector<std::uint32_t> read_arguments(Function &function, Storage storage);

private:
    // Reads the directives before the name of a variable. Returns the size of an element.
    std::size_t read_type(Variable &variable);
    // Reads a name with its dimensions.
    void read_name(Variable &variable, std::size_t element);

    Tokens &tokens_;
    Module &module_;
    Scopes &scopes_;
};

} // namespace tcuda::kernel_uses::ptx
