#include "sanitizer/_cpp/kernel_uses/ptx_uses.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "sanitizer/_cpp/kernel_uses/ptx_effects.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_flow.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_pointers.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_program.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_reader.hpp"

namespace tcuda::kernel_uses {
namespace {

using namespace ptx;

// Far more steps than real texts need.
constexpr std::size_t least_steps = 1 << 16, steps_per_byte = 16, most_steps = std::size_t(1) << 27;

// Whether the compiler made up the name: `kernel_param_0`.
bool is_made_up(std::string_view name) {
    auto stem = name;
    while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9')
        stem.remove_suffix(1);
    constexpr std::string_view end = "param_";
    return stem.size() < name.size() && stem.size() >= end.size() && stem.substr(stem.size() - end.size()) == end;
}

void add_labels(const Function &entry, KernelUse &use) {
    for (const auto number : entry.arguments) {
        const Variable &argument = entry.variables[number];
        if (is_made_up(argument.name))
            continue;
        for (PointerUse &pointer : use.pointers)
            if (pointer.offset >= argument.offset && pointer.offset < argument.offset + argument.size)
                pointer.label = std::string(argument.name);
    }
}

// Adds the words of the parameters that are not there yet. Nothing is known of these words.
void add_words(KernelUse &use) {
    constexpr std::size_t most = 1024;
    for (const Parameter &parameter : use.parameters)
        for (auto word = (parameter.offset + 7) / 8 * 8; word + 8 <= parameter.offset + parameter.size; word += 8) {
            if (use.pointers.size() >= most)
                break;
            const auto is_word = [&](const PointerUse &pointer) { return pointer.offset == word; };
            if (std::any_of(use.pointers.begin(), use.pointers.end(), is_word))
                continue;
            PointerUse pointer;
            pointer.offset = word;
            pointer.kind = Kind::both;
            pointer.possible = true;
            use.pointers.push_back(pointer);
        }
    std::sort(use.pointers.begin(), use.pointers.end(),
              [](const PointerUse &left, const PointerUse &right) { return left.offset < right.offset; });
}

KernelUse use_of(const Module &module, const Function &entry, std::size_t &steps) {
    KernelUse use;
    for (const auto number : entry.arguments)
        use.parameters.push_back({entry.variables[number].offset, entry.variables[number].size});
    const std::size_t size = entry.instructions.size() + entry.registers + entry.variables.size();
    if (steps < size) {
        add_words(use);
        return use;
    }
    steps -= size;
    Flow flow(module, entry, steps);
    if (flow.run()) {
        const Effects effects = effects_of(flow);
        const Pointers pointers(flow, effects, entry);
        use.pointers = pointers.uses();
        use.complete = pointers.are_complete();
        if (pointers.are_lost())
            add_words(use);
    } else {
        add_words(use);
    }
    add_labels(entry, use);
    use.program = program_of(module, entry);
    return use;
}

} // namespace

KernelUses uses_of_ptx(std::string_view text) {
    const Module module = read_module(text);
    std::size_t steps = std::min(least_steps + steps_per_byte * text.size(), most_steps);
    KernelUses uses;
    for (const Function &function : module.functions)
        if (function.is_entry && function.has_body)
            uses[std::string(function.name)] = use_of(module, function, steps);
    return uses;
}

} // namespace tcuda::kernel_uses
