#include "sanitizer/_cpp/kernel_uses/mangled_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "sanitizer/_cpp/kernel_uses/words.hpp"

namespace tcuda::kernel_uses {
namespace {

constexpr std::string_view opening = "(<[{", closing = ")>]}";

struct Freed {
    void operator()(char *text) const { std::free(text); }
};

std::string demangled(const std::string &name) {
    if (name.compare(0, 2, "_Z") != 0)
        return {};
    int status = 0;
    const std::unique_ptr<char, Freed> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
    return status == 0 && text != nullptr ? std::string(text.get()) : std::string();
}

// The types between the last pair of parentheses, which are the parameters of the function.
std::vector<std::string_view> parameter_types(std::string_view function) {
    std::vector<std::string_view> types;
    if (function.empty() || function.back() != ')')
        return types;
    function.remove_suffix(1);
    std::size_t depth = 0, end = function.size();
    for (std::size_t place = end; place-- > 0;) {
        const char letter = function[place];
        if (closing.find(letter) != std::string_view::npos) {
            ++depth;
        } else if (depth != 0) {
            depth -= opening.find(letter) != std::string_view::npos;
        } else if (letter == ',' || letter == '(') {
            types.insert(types.begin(), trimmed(function.substr(place + 1, end - place - 1)));
            end = place;
            if (letter == '(')
                return types;
        } else if (opening.find(letter) != std::string_view::npos) {
            break;
        }
    }
    return {};
}

bool remove_end(std::string_view *text, std::string_view end) {
    if (text->size() < end.size() || text->substr(text->size() - end.size()) != end)
        return false;
    text->remove_suffix(end.size());
    return true;
}

// Removes the qualifiers behind a type, and returns whether const is one of them.
bool remove_qualifiers(std::string_view *type) {
    bool is_const = false;
    for (;;) {
        if (remove_end(type, " const"))
            is_const = true;
        else if (!remove_end(type, " volatile") && !remove_end(type, " __restrict") && !remove_end(type, " restrict"))
            return is_const;
    }
}

// What a kernel does with the memory of a parameter of this type; none if the type is not a pointer to numbers.
Kind kind_of(std::string_view type) {
    remove_qualifiers(&type);
    if (!remove_end(&type, "*"))
        return Kind::none;
    const bool is_const = remove_qualifiers(&type);
    if (remove_end(&type, "*")) // a table of pointers
        return Kind::none;
    return is_const ? Kind::read : Kind::both;
}

} // namespace

KernelUse uses_of_mangled_name(const std::string &name, const std::vector<Parameter> &parameters) {
    KernelUse use;
    use.parameters = parameters;
    const std::string function = demangled(name);
    const std::vector<std::string_view> types = parameter_types(function);
    if (types.size() != parameters.size())
        return use;
    for (std::size_t place = 0; place < types.size(); ++place) {
        const Kind kind = kind_of(types[place]);
        if (kind != Kind::none && parameters[place].size == sizeof(void *)) {
            use.pointers.emplace_back();
            use.pointers.back().offset = parameters[place].offset;
            use.pointers.back().kind = kind;
        }
    }
    return use;
}

} // namespace tcuda::kernel_uses
