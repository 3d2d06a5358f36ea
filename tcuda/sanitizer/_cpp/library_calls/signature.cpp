#include "sanitizer/_cpp/library_calls/signature.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "threads/published.hpp"

namespace tcuda::library_calls {
namespace {

struct RoleName {
    std::string_view name;
    Role role;
};

constexpr RoleName role_names[] = {
    {"wide", Role::wide},         {"float", Role::real32},   {"double", Role::real64},   {"data", Role::data_type},
    {"index", Role::index_type},  {"nccl", Role::nccl_type}, {"cupy", Role::cupy_type},  {"order", Role::order},
    {"vector", Role::vector},     {"read", Role::read},      {"write", Role::write},     {"both", Role::both},
    {"maybe", Role::maybe},       {"table", Role::table},    {"object", Role::object},   {"keeps", Role::keeps},
    {"sets", Role::sets},         {"new", Role::create},     {"holds", Role::holds},     {"indexes", Role::indexes},
    {"repoints", Role::repoints}, {"ends", Role::ends},      {"resizes", Role::resizes}, {"reads", Role::reads},
    {"writes", Role::writes},     {"fills", Role::fills},
};

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        if (separator != ' ' || end != begin)
            parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

// Reads the arguments of one function.
class Reader {
public:
    Reader(const Row &row, std::string_view type) : words_(split(row.arguments, ' ')), row_(row) {
        if (!type.empty()) {
            const bool complex = type.front() == 'C' || type.front() == 'Z';
            itemsize_ = size_of(type.front());
            real_size_ = complex ? itemsize_ / 2 : itemsize_;
        }
        for (const std::string_view word : words_)
            labels_.push_back(word.substr(0, word.find_first_of(":^@")));
    }

    std::vector<Argument> arguments() {
        std::vector<Argument> made;
        for (std::size_t index = 0; index < words_.size(); ++index)
            made.push_back(argument(words_[index], labels_[index]));
        return made;
    }

private:
    static std::size_t size_of(char type) {
        switch (type) {
        case 'S':
        case 's':
            return 4;
        case 'D':
        case 'd':
        case 'C':
        case 'c':
            return 8;
        default:
            return 16;
        }
    }

    [[noreturn]] void fail(std::string_view word) const {
        throw std::logic_error("the row of " + std::string(row_.name) + " has a wrong argument: " + std::string(word));
    }

    int place_of(std::string_view label) const {
        for (std::size_t index = 0; index < labels_.size(); ++index)
            if (labels_[index] == label)
                return int(index);
        fail(label);
    }

    Number::Term term(std::string_view text) const {
        if (!text.empty() && text.front() >= '0' && text.front() <= '9')
            return {-1, std::atoll(std::string(text).c_str())};
        return {place_of(text), 0};
    }

    Number number(std::string_view text) const {
        Number made;
        if (const std::size_t at = text.find('?'); at != text.npos) {
            const std::size_t colon = text.find(':', at);
            made.form = Number::Form::choice;
            made.terms[0] = term(text.substr(0, at));
            made.terms[1] = term(text.substr(at + 1, colon - at - 1));
            made.terms[2] = term(text.substr(colon + 1));
        } else if (const std::size_t sign = text.find_first_of("+*"); sign != text.npos) {
            made.form = text[sign] == '+' ? Number::Form::sum : Number::Form::product;
            made.terms[0] = term(text.substr(0, sign));
            made.terms[1] = term(text.substr(sign + 1));
        } else {
            made.terms[0] = term(text);
        }
        return made;
    }

    std::vector<Number> numbers(std::string_view text) const {
        std::vector<Number> made;
        for (const std::string_view part : split(text, ','))
            made.push_back(number(part));
        return made;
    }

    Argument argument(std::string_view word, std::string_view label) const {
        Argument made;
        made.label = label;
        made.itemsize = itemsize_;
        std::string_view rest = word.substr(label.size());
        if (!rest.empty() && rest.front() == ':') {
            rest.remove_prefix(1);
            const std::string_view role = rest.substr(0, rest.find_first_of("(^@"));
            rest.remove_prefix(role.size());
            bool found = false;
            for (const RoleName &known : role_names)
                if (known.name == role) {
                    made.role = known.role;
                    found = true;
                }
            if (!found)
                fail(word);
        }
        if (!rest.empty() && rest.front() == '(') {
            const std::size_t end = rest.find(')');
            const auto parts = split(rest.substr(1, end - 1), ';');
            made.extent.counts = numbers(parts[0]);
            if (parts.size() > 1)
                made.extent.strides = numbers(parts[1]);
            if (parts.size() > 2)
                made.extent.batches = numbers(parts[2]);
            if (made.extent.counts.size() > 2 || made.extent.strides.size() > 1 ||
                (!made.extent.batches.empty() && made.extent.batches.size() != 2))
                fail(word);
            rest.remove_prefix(end + 1);
        }
        while (!rest.empty()) {
            const char sign = rest.front();
            const std::string_view name = rest.substr(1, rest.find_first_of("^@", 1) - 1);
            rest.remove_prefix(std::min(rest.size(), name.size() + 1));
            if (sign == '^')
                made.extent.exchanged = place_of(name);
            else if (name == "real")
                made.itemsize = real_size_;
            else if (name.front() >= '0' && name.front() <= '9')
                made.itemsize = std::size_t(std::atoi(std::string(name).c_str()));
            else
                made.type_argument = place_of(name);
        }
        if (made.role == Role::table)
            made.itemsize = sizeof(void *);
        return made;
    }

    std::vector<std::string_view> words_, labels_;
    const Row &row_;
    std::size_t itemsize_ = 0, real_size_ = 0; // of the type of the function
};

std::vector<Signature> make_signatures() {
    std::vector<Signature> made;
    made.reserve(function_count);
    for (const Function &function : functions) {
        const Row &row = rows[function.row];
        const auto types = split(row.types, ' ');
        const std::string_view type = types.empty() ? std::string_view() : types[function.type];
        Signature signature;
        signature.name = row.name;
        if (const std::size_t at = signature.name.find('?'); at != signature.name.npos)
            signature.name.replace(at, 1, type);
        signature.arguments = Reader(row, type).arguments();
        signature.extra = row.extra;
        signature.plans_are_numbers = row.name.substr(0, 5) == "cufft";
        for (std::size_t index = 0; index < signature.arguments.size(); ++index)
            if (signature.arguments[index].label == "stream")
                signature.stream = int(index);
        made.push_back(std::move(signature));
    }
    return made;
}

// The bytes of the types of each library, by their number; 0: no such type.
constexpr std::uint8_t data_sizes[] = {4, 8, 2, 1, 8, 16, 4, 2, 1, 2,  4, 8,  4, 8, 2, 4,
                                       0, 0, 0, 0, 2, 4,  2, 4, 8, 16, 8, 16, 1, 1, 1, 1};
constexpr std::uint8_t index_sizes[] = {0, 2, 4, 8};
constexpr std::uint8_t nccl_sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr std::uint8_t cupy_sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16, 1};

template <std::size_t size> std::size_t size_in(const std::uint8_t (&sizes)[size], std::int64_t type) {
    return type >= 0 && std::size_t(type) < size ? sizes[type] : 0;
}

// A contiguous run may have any number of items; a region whose end does not fit is none.
bool product_fits(std::int64_t left, std::int64_t right) {
    std::int64_t product;
    return !__builtin_mul_overflow(left, right, &product) && product < (std::int64_t(1) << 56);
}

} // namespace

std::size_t size_of_data_type(std::int64_t type) { return size_in(data_sizes, type); }

std::int64_t Signature::number(Values values, const Number::Term &term) const {
    if (term.argument < 0)
        return term.constant;
    const std::uint64_t value = values[term.argument];
    switch (arguments[std::size_t(term.argument)].role) {
    case Role::wide:
        return std::int64_t(value);
    case Role::vector: {
        const auto *items = reinterpret_cast<const std::vector<std::ptrdiff_t> *>(value);
        std::int64_t product = 1;
        for (const std::ptrdiff_t item : *items)
            if (__builtin_mul_overflow(product, std::int64_t(item), &product))
                return -1;
        return product;
    }
    default:
        return std::int32_t(std::uint32_t(value)); // the upper half is not part of the argument
    }
}

std::int64_t Signature::number(Values values, const Number &number) const {
    const std::int64_t first = this->number(values, number.terms[0]);
    std::int64_t result = first;
    switch (number.form) {
    case Number::Form::term:
        return first;
    case Number::Form::choice:
        return this->number(values, number.terms[first != 0 ? 1 : 2]);
    case Number::Form::sum:
        return __builtin_add_overflow(first, this->number(values, number.terms[1]), &result) ? -1 : result;
    case Number::Form::product:
        return __builtin_mul_overflow(first, this->number(values, number.terms[1]), &result) ? -1 : result;
    }
    return -1;
}

std::size_t Signature::itemsize(Values values, const Argument &argument) const {
    if (argument.type_argument < 0)
        return argument.itemsize;
    const std::int64_t type = std::int32_t(std::uint32_t(values[argument.type_argument]));
    switch (arguments[std::size_t(argument.type_argument)].role) {
    case Role::data_type:
        return size_in(data_sizes, type);
    case Role::index_type:
        return size_in(index_sizes, type);
    case Role::nccl_type:
        return size_in(nccl_sizes, type);
    case Role::cupy_type:
        return size_in(cupy_sizes, type);
    default:
        return 0;
    }
}

Signature::Memory Signature::find(Values values, std::size_t index, races::Region &region) const {
    const Argument &argument = arguments[index];
    const Extent &extent = argument.extent;
    const Address address = Address(values[index]);
    const std::size_t size = itemsize(values, argument);
    const auto unsized = [&] {
        region.set(address, 1, {{1, 1}});
        return Memory::unsized;
    };
    if (address == 0)
        return Memory::none;
    if (extent.counts.empty() || size == 0)
        return unsized();

    races::Dimension dimensions[3]; // the outermost first
    std::size_t depth = 0;
    const auto add = [&dimensions, &depth, size](std::int64_t count, std::int64_t stride) {
        if (count < 0 || stride < 0 || !product_fits(stride, std::int64_t(size)) ||
            !product_fits(count, stride * std::int64_t(size)))
            return false;
        dimensions[depth++] = {count, stride * std::int64_t(size)};
        return true;
    };
    if (!extent.batches.empty() && !add(number(values, extent.batches[1]), number(values, extent.batches[0])))
        return unsized();
    std::int64_t first = number(values, extent.counts[0]);
    const std::int64_t stride = extent.strides.empty() ? 1 : number(values, extent.strides[0]);
    if (extent.counts.size() == 1) {
        // The address is the lowest one of a vector with a negative increment, too.
        if (!add(first, stride < 0 ? -stride : stride))
            return unsized();
    } else {
        std::int64_t second = number(values, extent.counts[1]);
        if (extent.exchanged >= 0) {
            const std::int64_t operation = number(values, Number::Term{extent.exchanged, 0});
            const bool order = arguments[std::size_t(extent.exchanged)].role == Role::order;
            if (operation == 2 || (operation != 0 && !order))
                std::swap(first, second);
        }
        if (!add(second, stride) || !add(first, 1))
            return unsized();
    }
    for (std::size_t index = 0; index < depth; ++index)
        if (dimensions[index].count == 0)
            return Memory::none;
    region.set(address, size, {dimensions, dimensions + depth});
    return Memory::exact;
}

const std::vector<Signature> &signatures() {
    static Published<const std::vector<Signature>> list;
    return list.get([] { return new std::vector<Signature>(make_signatures()); });
}

} // namespace tcuda::library_calls
