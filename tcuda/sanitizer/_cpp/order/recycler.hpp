#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace tcuda::races {

// Objects that count their users in `users`. An object without users is used again, with the memory that it has.
template <typename Object> class Recycler {
public:
    // An object with one user.
    Object *take() {
        if (spare_.empty()) {
            spare_.reserve(objects_.size() + 1); // so that drop() needs no memory
            objects_.emplace_back();
            spare_.push_back(&objects_.back());
        }
        Object *const object = spare_.back();
        spare_.pop_back();
        object->users = 1;
        ++used_;
        return object;
    }

    // Returns whether that was the last user.
    bool drop(Object *object) noexcept {
        if (--object->users != 0)
            return false;
        spare_.push_back(object);
        --used_;
        return true;
    }

    std::size_t used() const { return used_; }

private:
    std::deque<Object> objects_;
    std::vector<Object *> spare_;
    std::size_t used_ = 0;
};

} // namespace tcuda::races
