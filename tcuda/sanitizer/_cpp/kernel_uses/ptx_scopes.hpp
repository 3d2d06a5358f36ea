// The names of the function that is read.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"

namespace tcuda::kernel_uses::ptx {

// The names that the open blocks of a function declare. An inner block hides the names of the outer blocks.
class Scopes {
public:
    explicit Scopes(const Module &module) : module_(module) {}

    void begin_function() { scopes_.assign(1, Scope()); }
    void begin_block() { scopes_.emplace_back(); }
    void end_block() { scopes_.pop_back(); }

    void declare_variable(Function &function, const Variable &variable);
    // Returns the number of the register.
    std::uint32_t declare_register(Function &function, std::string_view name);
    // `%r` of `.reg .b32 %r<5>`.
    void declare_registers(std::string_view stem) { scopes_.back().families.insert(stem); }

    // What a word stands for.
    Operand resolved(Function &function, std::string_view word);

private:
    struct Scope {
        std::unordered_map<std::string_view, Operand> names;
        std::unordered_set<std::string_view> families; // stems of the names of registers
    };

    const Module &module_;
    std::vector<Scope> scopes_;
};

} // namespace tcuda::kernel_uses::ptx
