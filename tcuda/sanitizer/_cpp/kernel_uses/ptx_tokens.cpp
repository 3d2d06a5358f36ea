#include "sanitizer/_cpp/kernel_uses/ptx_tokens.hpp"

namespace tcuda::kernel_uses::ptx {
namespace {

bool is_letter(char sign) {
    return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9') ||
           sign == '_' || sign == '$' || sign == '%' || sign == '.';
}

bool is_space(char sign) { return sign == ' ' || sign == '\t' || sign == '\n' || sign == '\r' || sign == '\0'; }

char closing_of(char sign) { return sign == '{' ? '}' : sign == '(' ? ')' : sign == '[' ? ']' : 0; }

} // namespace

void Tokens::skip_space() {
    while (position_ < text_.size()) {
        if (is_space(text_[position_])) {
            ++position_;
        } else if (text_.compare(position_, 2, "//") == 0) {
            const auto end = text_.find('\n', position_);
            position_ = end == text_.npos ? text_.size() : end;
        } else if (text_.compare(position_, 2, "/*") == 0) {
            const auto end = text_.find("*/", position_ + 2);
            position_ = end == text_.npos ? text_.size() : end + 2;
        } else {
            break;
        }
    }
}

void Tokens::next() {
    skip_space();
    const auto begin = position_;
    if (begin == text_.size()) {
        current_ = {};
        return;
    }
    if (text_[begin] == '"') {
        const auto end = text_.find('"', begin + 1);
        position_ = end == text_.npos ? text_.size() : end + 1;
    } else if (is_letter(text_[begin])) {
        while (position_ < text_.size()) {
            if (is_letter(text_[position_]))
                ++position_;
            else if (text_.compare(position_, 2, "::") == 0) // as in `shared::cta`
                position_ += 2;
            else
                break;
        }
    } else {
        ++position_;
    }
    current_ = text_.substr(begin, position_ - begin);
}

bool Tokens::take(char sign) {
    if (!is(sign))
        return false;
    next();
    return true;
}

bool Tokens::take(std::string_view word) {
    if (!is(word))
        return false;
    next();
    return true;
}

void Tokens::skip_line() {
    // A string of the line may have signs of comments.
    const auto end = text_.find('\n', static_cast<std::size_t>(current_.data() + current_.size() - text_.data()));
    position_ = end == text_.npos ? text_.size() : end;
    next();
}

void Tokens::skip_statement() {
    while (!at_end() && !is('}') && !take(';'))
        next();
}

void Tokens::skip_group() {
    const char opening = current_.empty() ? 0 : current_[0], closing = closing_of(opening);
    if (closing == 0)
        return next();
    std::size_t depth = 0;
    do {
        if (is(opening))
            ++depth;
        else if (is(closing))
            --depth;
        next();
    } while (depth > 0 && !at_end());
}

bool integer_of(std::string_view word, std::int64_t &value) {
    std::size_t at = 0;
    const bool is_negative = !word.empty() && word[0] == '-';
    at += is_negative;
    if (at == word.size() || word[at] < '0' || word[at] > '9')
        return false;
    unsigned base = 10;
    if (word[at] == '0' && at + 1 < word.size()) {
        const char kind = word[at + 1];
        base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
        at += base == 8 ? 1 : 2;
    }
    std::uint64_t read = 0;
    for (; at < word.size() && word[at] != 'U'; ++at) {
        const char sign = word[at];
        const unsigned digit = sign >= '0' && sign <= '9'   ? unsigned(sign - '0')
                               : sign >= 'a' && sign <= 'f' ? unsigned(sign - 'a' + 10)
                               : sign >= 'A' && sign <= 'F' ? unsigned(sign - 'A' + 10)
                                                            : 99;
        if (digit >= base)
            return false;
        read = read * base + digit;
    }
    value = static_cast<std::int64_t>(is_negative ? 0 - read : read);
    return true;
}

} // namespace tcuda::kernel_uses::ptx
