// What a register may hold: sums of pointers and numbers. Equal values have equal numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tcuda::kernel_uses::ptx {

// The source of a part of a value.
struct Origin {
    enum class Kind : std::uint8_t {
        parameter, // the bytes [offset, offset + size) of the parameter block
        any_word,  // some bytes of [offset, offset + size) of the parameter block
        region,    // the address of the region with the number `offset`
        foreign,   // a value that was loaded from memory that is not followed
        system,    // an address that the driver gives to kernels
        mixed,     // a number that was computed from too many others
    };
    Kind kind;
    std::int64_t offset = 0, size = 0;

    std::tuple<Kind, std::int64_t, std::int64_t> key() const { return {kind, offset, size}; }
};

// A summand.
struct Term {
    std::uint32_t origin = 0; // a number of Values::origin
    bool is_derived = false;  // a part, a multiple or another function of the origin
    bool is_negative = false; // subtracted

    std::uint32_t key() const { return origin << 2 | unsigned(is_derived) << 1 | unsigned(is_negative); }
    bool operator<(const Term &other) const { return key() < other.key(); }
    bool operator==(const Term &other) const { return key() == other.key(); }
};

// A sum of terms and of a number. Without terms: a number that is no pointer.
struct Sum {
    std::vector<Term> terms; // sorted, each once
    bool is_exact = false;   // whether the number is known
    std::int64_t number = 0; // 0 if unknown

    bool operator<(const Sum &other) const {
        return std::tie(terms, is_exact, number) < std::tie(other.terms, other.is_exact, other.number);
    }
    bool operator==(const Sum &other) const {
        return terms == other.terms && is_exact == other.is_exact && number == other.number;
    }
};

using Value = std::uint32_t;

class Values {
public:
    // No value was seen yet; a number that is no pointer.
    static constexpr Value none = 0, no_pointer = 1;

    Values();

    Value number(std::int64_t number);
    Value of(const Origin &origin, std::int64_t number = 0);
    Value foreign() { return foreign_; }
    Value system() { return system_; }

    // All values that either of two values may be.
    Value either(Value first, Value second);
    Value sum(Value first, Value second) {
        return first == no_pointer && second == no_pointer ? no_pointer : added(first, second, false);
    }
    Value difference(Value first, Value second) { return added(first, second, true); }
    // A part of a value, with fewer bytes than a pointer.
    Value part(Value value) { return mapped(Change::part, value); }
    // The result of an unknown function of a value.
    Value derived(Value value) { return mapped(Change::derived, value); }
    // The value plus an unknown number.
    Value moved(Value value) { return mapped(Change::moved, value); }
    // The value, if its parts may have been put together to whole pointers.
    Value whole(Value value) { return mapped(Change::whole, value); }
    // One of the whole terms of the value, with all numbers that were derived from others.
    Value choices(Value value) { return mapped(Change::choices, value); }
    // One of the terms of the value. There are few such values, so that loops come to an end.
    Value coarse(Value value) { return mapped(Change::coarse, value); }

    const std::vector<Sum> &sums(Value value) const { return *sums_[value]; }
    const Origin &origin(std::uint32_t number) const { return origins_[number]; }
    // Whether the value can only be one known number, which `number` then gets.
    bool is_number(Value value, std::int64_t &number) const;
    // The amount of work since the last call.
    std::size_t take_work() { return std::exchange(work_, 0); }
    // Whether a limit was exceeded: values are missing then.
    bool is_exhausted() const { return is_exhausted_; }

private:
    enum class Change : std::uint8_t { part, derived, moved, whole, choices, coarse };
    static constexpr std::size_t most_values = 1 << 16, most_sums = 16, most_terms = 12, most_singles = 64;

    std::uint32_t origin_number(const Origin &origin);
    Value added(Value first, Value second, bool is_difference);
    Value mapped(Change change, Value value);
    Value interned(std::vector<Sum> sums);
    void simplify(std::vector<Sum> &sums);
    Sum added(const Sum &first, const Sum &second, bool is_difference) const;
    void make_whole(Sum &sum);
    static void split(std::vector<Sum> &sums);
    static void choose(std::vector<Sum> &sums);
    bool is_region(const Term &term) const { return origins_[term.origin].kind == Origin::Kind::region; }

    std::vector<Origin> origins_;
    std::map<std::tuple<Origin::Kind, std::int64_t, std::int64_t>, std::uint32_t> origin_numbers_;
    std::map<std::vector<Sum>, Value> numbers_;
    std::vector<const std::vector<Sum> *> sums_;
    std::unordered_map<std::uint64_t, Value> made_[9]; // results of earlier calls
    Term mixed_;
    Value foreign_ = none, system_ = none;
    std::size_t work_ = 0;
    bool is_exhausted_ = false;
};

} // namespace tcuda::kernel_uses::ptx
