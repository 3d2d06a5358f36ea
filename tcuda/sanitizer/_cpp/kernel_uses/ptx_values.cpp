#include "sanitizer/_cpp/kernel_uses/ptx_values.hpp"

#include <algorithm>
#include <utility>

namespace tcuda::kernel_uses::ptx {
namespace {

std::uint64_t pair_of(Value first, Value second) { return std::uint64_t(first) << 32 | second; }

std::int64_t sum_of(std::int64_t first, std::int64_t second, bool is_difference) {
    const auto left = static_cast<std::uint64_t>(first), right = static_cast<std::uint64_t>(second);
    return static_cast<std::int64_t>(is_difference ? left - right : left + right);
}

} // namespace

Values::Values() {
    mixed_.origin = origin_number({Origin::Kind::mixed, 0, 0});
    mixed_.is_derived = true;
    interned({});
    interned({Sum()});
    foreign_ = of({Origin::Kind::foreign, 0, 0});
    system_ = of({Origin::Kind::system, 0, 0});
}

std::uint32_t Values::origin_number(const Origin &origin) {
    const auto [found, is_new] = origin_numbers_.emplace(origin.key(), static_cast<std::uint32_t>(origins_.size()));
    if (is_new)
        origins_.push_back(origin);
    return found->second;
}

Value Values::number(std::int64_t number) {
    Sum sum;
    sum.is_exact = true;
    sum.number = number;
    return interned({std::move(sum)});
}

Value Values::of(const Origin &origin, std::int64_t number) {
    Sum sum;
    Term term;
    term.origin = origin_number(origin);
    sum.terms.push_back(term);
    sum.is_exact = origin.kind == Origin::Kind::region;
    sum.number = sum.is_exact ? number : 0;
    return interned({std::move(sum)});
}

Value Values::either(Value first, Value second) {
    if (first == second || second == none)
        return first;
    if (first == none)
        return second;
    if (first > second)
        std::swap(first, second);
    const auto key = pair_of(first, second);
    if (const auto found = made_[0].find(key); found != made_[0].end())
        return found->second;
    std::vector<Sum> sums = *sums_[first];
    sums.insert(sums.end(), sums_[second]->begin(), sums_[second]->end());
    return made_[0][key] = interned(std::move(sums));
}

Value Values::added(Value first, Value second, bool is_difference) {
    if (first == none || second == none)
        return none;
    const auto key = pair_of(first, second);
    auto &made = made_[is_difference ? 2 : 1];
    if (const auto found = made.find(key); found != made.end())
        return found->second;
    std::vector<Sum> sums;
    for (const Sum &left : *sums_[first])
        for (const Sum &right : *sums_[second])
            sums.push_back(added(left, right, is_difference));
    return made[key] = interned(std::move(sums));
}

Sum Values::added(const Sum &first, const Sum &second, bool is_difference) const {
    Sum sum;
    sum.terms = first.terms;
    for (Term term : second.terms) {
        term.is_negative = term.is_negative != is_difference;
        // A pointer minus itself is no pointer. Two foreign values may differ.
        Term opposite = term;
        opposite.is_negative = !term.is_negative;
        const auto kind = origins_[term.origin].kind;
        const bool is_one = kind == Origin::Kind::parameter || kind == Origin::Kind::region;
        const auto found = std::find(sum.terms.begin(), sum.terms.end(), opposite);
        if (is_one && !term.is_derived && found != sum.terms.end())
            sum.terms.erase(found);
        else if (std::find(sum.terms.begin(), sum.terms.end(), term) == sum.terms.end())
            sum.terms.push_back(term);
    }
    std::sort(sum.terms.begin(), sum.terms.end());
    sum.is_exact = first.is_exact && second.is_exact;
    sum.number = sum.is_exact ? sum_of(first.number, second.number, is_difference) : 0;
    return sum;
}

Value Values::mapped(Change change, Value value) {
    if (value == none || value == no_pointer)
        return value;
    auto &made = made_[3 + static_cast<std::size_t>(change)];
    if (const auto found = made.find(value); found != made.end())
        return found->second;
    std::vector<Sum> sums = *sums_[value];
    if (change == Change::coarse)
        split(sums);
    if (change == Change::choices)
        choose(sums);
    for (Sum &sum : sums) {
        if (change == Change::whole) {
            make_whole(sum);
            continue;
        }
        for (Term &term : sum.terms)
            // Addresses of shared memory have four bytes.
            if (change == Change::derived || (change == Change::part && !is_region(term)))
                term.is_derived = true;
        if (change != Change::part)
            sum.is_exact = false, sum.number = 0;
        std::sort(sum.terms.begin(), sum.terms.end());
        sum.terms.erase(std::unique(sum.terms.begin(), sum.terms.end()), sum.terms.end());
    }
    return made_[3 + static_cast<std::size_t>(change)][value] = interned(std::move(sums));
}

// Both halves of one pointer, or all its bytes, are the pointer.
void Values::make_whole(Sum &sum) {
    if (sum.terms.empty())
        return;
    for (const Term &term : sum.terms)
        if (!term.is_derived || term.is_negative || origins_[term.origin].kind == Origin::Kind::region)
            return;
    const Origin first = origins_[sum.terms[0].origin];
    if (sum.terms.size() == 1) {
        if (first.kind != Origin::Kind::parameter || first.size == 8)
            sum.terms[0].is_derived = false;
        return;
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
    for (const Term &term : sum.terms) {
        const Origin &origin = origins_[term.origin];
        if (origin.kind != Origin::Kind::parameter)
            return;
        pieces.emplace_back(origin.offset, origin.size);
    }
    std::sort(pieces.begin(), pieces.end());
    std::int64_t end = pieces[0].first;
    for (const auto &[offset, size] : pieces) {
        if (offset != end)
            return;
        end += size;
    }
    if (end - pieces[0].first != 8)
        return;
    Term term;
    term.origin = origin_number({Origin::Kind::parameter, pieces[0].first, 8});
    sum.terms.assign(1, term);
}

// Makes a sum of each term.
void Values::split(std::vector<Sum> &sums) {
    std::vector<Sum> singles;
    for (const Sum &sum : sums) {
        if (sum.terms.empty())
            singles.emplace_back();
        for (const Term &term : sum.terms) {
            Sum single;
            single.terms.push_back(term);
            single.terms[0].is_negative = false;
            singles.push_back(std::move(single));
        }
    }
    std::sort(singles.begin(), singles.end());
    singles.erase(std::unique(singles.begin(), singles.end()), singles.end());
    sums = std::move(singles);
}

// Makes a sum of each whole term.
void Values::choose(std::vector<Sum> &sums) {
    std::vector<Sum> choices;
    for (const Sum &sum : sums) {
        Sum derived;
        for (const Term &term : sum.terms)
            if (term.is_derived)
                derived.terms.push_back(term);
        if (derived.terms.size() == sum.terms.size())
            choices.push_back(sum);
        for (const Term &term : sum.terms) {
            if (term.is_derived)
                continue;
            Sum choice = derived;
            choice.terms.push_back(term);
            choice.terms.back().is_negative = false;
            choices.push_back(std::move(choice));
        }
    }
    sums = std::move(choices);
}

// Keeps the number of sums small. The result may be more than the truth, never less.
void Values::simplify(std::vector<Sum> &sums) {
    // Numbers that were computed from pointers or scalars are seldom addresses: one sum has the terms of all.
    const auto is_number = [&](const Sum &sum) {
        return !sum.is_exact &&
               std::all_of(sum.terms.begin(), sum.terms.end(), [](const Term &term) { return term.is_derived; });
    };
    const auto first_number =
        std::stable_partition(sums.begin(), sums.end(), [&](const Sum &sum) { return !is_number(sum); });
    if (first_number != sums.end()) {
        Sum numbers;
        for (auto sum = first_number; sum != sums.end(); ++sum)
            numbers.terms.insert(numbers.terms.end(), sum->terms.begin(), sum->terms.end());
        std::sort(numbers.terms.begin(), numbers.terms.end());
        numbers.terms.erase(std::unique(numbers.terms.begin(), numbers.terms.end()), numbers.terms.end());
        if (numbers.terms.size() > most_terms || std::binary_search(numbers.terms.begin(), numbers.terms.end(), mixed_))
            numbers.terms.assign(1, mixed_);
        sums.erase(first_number, sums.end());
        sums.push_back(std::move(numbers));
    }
    // A sum with an unknown number stands for those with known numbers.
    const bool has_number = std::any_of(sums.begin(), sums.end(), is_number);
    const auto is_contained = [&](const Sum &sum) {
        const auto stands = [&](const Sum &other) { return !other.is_exact && other.terms == sum.terms; };
        return sum.is_exact && (sum.terms.empty() ? has_number : std::any_of(sums.begin(), sums.end(), stands));
    };
    std::vector<Sum> others;
    for (Sum &sum : sums)
        if (!is_contained(sum))
            others.push_back(sum);
    sums = std::move(others);
    const auto sort = [&] {
        std::sort(sums.begin(), sums.end());
        sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
    };
    sort();
    if (sums.size() > most_sums) { // sums that differ in their numbers only
        for (Sum &sum : sums)
            sum.is_exact = false, sum.number = 0;
        sort();
    }
    const bool is_large =
        std::any_of(sums.begin(), sums.end(), [](const Sum &sum) { return sum.terms.size() > most_terms; });
    if (sums.size() <= most_sums && !is_large)
        return;
    split(sums);
    if (sums.size() > most_singles) {
        sums.resize(most_singles);
        is_exhausted_ = true;
    }
}

Value Values::interned(std::vector<Sum> sums) {
    work_ += sums.size();
    simplify(sums);
    const auto found = numbers_.find(sums);
    if (found != numbers_.end())
        return found->second;
    if (numbers_.size() >= most_values) {
        is_exhausted_ = true;
        return no_pointer;
    }
    const auto value = static_cast<Value>(sums_.size());
    const auto added = numbers_.emplace(std::move(sums), value).first;
    sums_.push_back(&added->first);
    return value;
}

bool Values::is_number(Value value, std::int64_t &number) const {
    const auto &sums = *sums_[value];
    if (sums.size() != 1 || !sums[0].terms.empty() || !sums[0].is_exact)
        return false;
    number = sums[0].number;
    return true;
}

} // namespace tcuda::kernel_uses::ptx
