// The operands of the instructions of a PTX text.
#pragma once

#include <cstddef>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_scopes.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_tokens.hpp"

namespace tcuda::kernel_uses::ptx {

class OperandReader {
public:
    OperandReader(Tokens &tokens, Scopes &scopes) : tokens_(tokens), scopes_(scopes) {}

    // `depth`: of vectors in vectors.
    Operand read_operand(Function &function, std::size_t depth = 0);
    // Reads operands in parentheses.
    void read_list(Function &function, std::vector<Operand> &operands);

private:
    Operand read_vector(Function &function, std::size_t depth);
    // A register, a variable, a name or a number, and an offset.
    Operand read_sum(Function &function);

    Tokens &tokens_;
    Scopes &scopes_;
};

} // namespace tcuda::kernel_uses::ptx
