#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sanitizer/_cpp/order/access.hpp"

namespace tcuda::races {

// The names of operations and arguments, each kept once under a number.
class Names {
public:
    Names() { number(""); } // 0 is the number of the empty text

    NameId number(std::string_view text) {
        const auto known = numbers_.find(text);
        if (known != numbers_.end())
            return known->second;
        const auto number = static_cast<NameId>(texts_.size());
        numbers_.emplace(texts_.emplace_back(text), number);
        return number;
    }
    const std::string &text(NameId number) const { return texts_[number]; }

private:
    std::deque<std::string> texts_; // references stay valid
    std::unordered_map<std::string_view, NameId> numbers_;
};

} // namespace tcuda::races
