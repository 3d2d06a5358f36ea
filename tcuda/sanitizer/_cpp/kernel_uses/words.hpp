#pragma once

#include <string_view>

namespace tcuda::kernel_uses {

constexpr std::string_view blanks = " \t\r";

inline bool starts_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }

// The text without the blanks at its ends.
inline std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(blanks);
    return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

} // namespace tcuda::kernel_uses
