// Objects that are made at their first use, and that live until the process ends.
#pragma once

#include <atomic>
#include <memory>
#include <type_traits>

namespace tcuda {

// In place of a static variable of a function with an initializer: the compiler guards such a variable with a lock, and
// a fork while a thread makes the object leaves the child waiting for ever. Here, each thread that finds no object
// makes one, and the first one counts. So `make` may be called more than once, and must have no effect but its result.
//
// The object is never destroyed: a thread may use it while the process ends.
template <typename Object> class Published {
public:
    constexpr Published() = default;

    template <typename Make> Object &get(Make make) {
        if (Object *const found = object_.load(std::memory_order_acquire))
            return *found;
        std::unique_ptr<Object> made(make());
        Object *first = nullptr;
        if (object_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel))
            return *made.release();
        return *first;
    }
    Object &get() {
        return get([] { return new std::remove_const_t<Object>; });
    }

private:
    std::atomic<Object *> object_{nullptr};
};

} // namespace tcuda
