#pragma once

#include <array>
#include <map>

#include "sanitizer/_cpp/order/address_hash.hpp"
#include "sanitizer/_cpp/order/allocation.hpp"
#include "sanitizer/_cpp/order/recycler.hpp"

namespace tcuda::races {

// The allocations by address. An allocation that is freed stays here until its memory is handed out again or unmapped.
class Allocations {
public:
    void add(Address address, std::size_t size, int device, Stream stream, StackId stack);
    void free(Address address, StackId stack);
    void forget(Address begin, Address end);

    // The bytes of the allocation that begins at `address`; 0 if none is known.
    std::size_t size_of(Address address) const {
        const auto known = by_address_.find(address);
        return known == by_address_.end() ? 0 : known->second->size;
    }

    // The allocation around `address` that is not freed; null if none is known.
    const Allocation *live(Address address) {
        const Allocation *const found = find(address);
        return found == nullptr || found->freed ? nullptr : found;
    }

    // The allocation around `address`; null if none is known.
    Allocation *find(Address address) {
        Allocation *&cached = cache_[place_of<cache_bits>(address)];
        if (cached == nullptr || !cached->listed || !cached->contains(address)) {
            auto after = by_address_.upper_bound(address);
            if (after == by_address_.begin() || !(--after)->second->contains(address))
                return nullptr;
            cached = after->second;
        }
        return cached;
    }
    // The same, for one more user.
    Allocation *use(Address address) {
        Allocation *const found = find(address);
        if (found != nullptr)
            ++found->users;
        return found;
    }
    void drop(Allocation *allocation) noexcept {
        if (allocation != nullptr)
            recycler_.drop(allocation);
    }

    std::size_t size() const { return recycler_.used(); }

private:
    static constexpr unsigned cache_bits = 12;

    std::map<Address, Allocation *> by_address_;
    Recycler<Allocation> recycler_;
    // Objects of `recycler_` that were found lately. Each may stand for another allocation by now.
    std::array<Allocation *, std::size_t(1) << cache_bits> cache_{};
};

} // namespace tcuda::races
