// Finds which pointers of the parameter block the accesses of a kernel go through.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_effects.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_flow.hpp"
#include "sanitizer/_cpp/kernel_uses/ptx_module.hpp"

namespace tcuda::kernel_uses::ptx {

class Pointers {
public:
    Pointers(const Flow &flow, const Effects &effects, const Function &entry);

    std::vector<PointerUse> uses() const;
    bool are_complete() const { return is_complete_ && !is_lost_; }
    // Whether the kernel uses memory to which any parameter may point.
    bool are_lost() const { return is_lost_; }

private:
    struct Found {
        Kind certain = Kind::none, possible = Kind::none;
    };
    // The terms of a sum that may be the base of the address.
    struct Bases {
        std::vector<Term> terms;
        bool is_lost = false; // whether the base may be something else
    };

    void find_evidence(const Effects &effects, const Function &entry);
    void add_evidence(Value value);
    const Term *parameter_alone(const Sum &sum) const;
    void add_access(const Access &access);
    void add_map(Value address, Kind kind);
    void add_possible(Value value, Kind kind);
    void add_possible(const Origin &origin, Kind kind);
    Bases bases_of(const Sum &sum) const;
    Bases derived_bases_of(const Sum &sum) const;
    bool is_pointer(const Term &term) const;
    const Origin &origin_of(const Term &term) const { return flow_.values().origin(term.origin); }

    const Flow &flow_;
    std::set<std::int64_t> pointers_; // offsets of parameters that are pointers for certain
    std::map<std::int64_t, Found> found_;
    bool is_complete_ = true;
    bool is_lost_ = false; // an access whose pointer may be any of the parameters
    bool has_foreign_ = false;
};

} // namespace tcuda::kernel_uses::ptx
