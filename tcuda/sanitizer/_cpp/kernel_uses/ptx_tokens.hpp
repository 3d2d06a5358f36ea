// The tokens of a PTX text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcuda::kernel_uses::ptx {

class Tokens {
public:
    // The text must outlive the tokens.
    explicit Tokens(std::string_view text) : text_(text) { next(); }

    // The current token: a word (name, number, opcode, directive, string) or one sign. Empty at the end of the text.
    std::string_view current() const { return current_; }
    bool at_end() const { return current_.empty(); }
    bool is(char sign) const { return current_.size() == 1 && current_[0] == sign; }
    bool is(std::string_view word) const { return current_ == word; }
    // Whether the current token is a directive such as `.reg`.
    bool is_directive() const { return current_.size() > 1 && current_[0] == '.'; }

    void next();
    // Takes the current token if the token is `sign`.
    bool take(char sign);
    bool take(std::string_view word);
    // Goes to the first token of the next line. For directives that no semicolon ends.
    void skip_line();
    // Goes behind the next semicolon, or to the end of the block.
    void skip_statement();
    // The current token is an opening sign. Goes behind the sign that closes the pair.
    void skip_group();

private:
    void skip_space();

    std::string_view text_, current_;
    std::size_t position_ = 0;
};

// The value of a number of PTX. False if the word is no integer.
bool integer_of(std::string_view word, std::int64_t &value);

} // namespace tcuda::kernel_uses::ptx
