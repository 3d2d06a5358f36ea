#include "sanitizer/_cpp/order/allocations.hpp"

#include <iterator>

namespace tcuda::races {

void Allocations::add(Address address, std::size_t size, int device, Stream stream, StackId stack) {
    forget(address, address + size);
    Allocation *const made = recycler_.take();
    made->address = address;
    made->size = size;
    made->device = device;
    made->stream = stream;
    made->stack = stack;
    made->freed_stack = 0;
    made->freed = false;
    made->listed = true;
    by_address_.emplace(address, made);
}

void Allocations::free(Address address, StackId stack) {
    const auto known = by_address_.find(address);
    if (known == by_address_.end() || known->second->freed)
        return;
    known->second->freed = true;
    known->second->freed_stack = stack;
}

void Allocations::forget(Address begin, Address end) {
    auto next = by_address_.upper_bound(begin);
    if (next != by_address_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second->size > begin)
            next = before;
    }
    while (next != by_address_.end() && next->first < end) {
        next->second->listed = false;
        drop(next->second);
        next = by_address_.erase(next);
    }
}

} // namespace tcuda::races
