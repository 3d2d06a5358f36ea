// Lists that are linked through their members: no function allocates host memory, and none can fail.
#pragma once

#include <cstddef>

namespace tcuda {

// The links of a member in one list.
template <typename Member> struct Links {
    Member *before = nullptr, *after = nullptr;
    bool in_list = false;
};

// A list of members. `links` is the member's Links for this list.
template <typename Member, Links<Member> Member::*links> class LinkedList {
public:
    // Adds a member before all other members, unless it is in the list.
    void add(Member &member) {
        Links<Member> &own = member.*links;
        if (own.in_list)
            return;
        own = {nullptr, first_, true};
        (first_ != nullptr ? (first_->*links).before : last_) = &member;
        first_ = &member;
    }

    // Adds a member behind all other members, unless it is in the list.
    void add_last(Member &member) {
        Links<Member> &own = member.*links;
        if (own.in_list)
            return;
        own = {last_, nullptr, true};
        (last_ != nullptr ? (last_->*links).after : first_) = &member;
        last_ = &member;
    }

    // Removes a member, if it is in the list.
    void remove(Member &member) {
        Links<Member> &own = member.*links;
        if (!own.in_list)
            return;
        (own.before != nullptr ? (own.before->*links).after : first_) = own.after;
        (own.after != nullptr ? (own.after->*links).before : last_) = own.before;
        own = {};
    }

    // Calls `visit` with each member, which `visit` may remove and delete.
    template <typename Visit> void each(Visit visit) const {
        for (Member *member = first_; member != nullptr;) {
            Member &visited = *member;
            member = (visited.*links).after;
            visit(visited);
        }
    }

    // Looks at the first `most` members, and returns the first one that is `wanted`; null if none is.
    template <typename Wanted> Member *find(std::size_t most, Wanted wanted) const {
        for (Member *member = first_; member != nullptr && most > 0; member = (member->*links).after, --most)
            if (wanted(*member))
                return member;
        return nullptr;
    }

private:
    Member *first_ = nullptr, *last_ = nullptr;
};

} // namespace tcuda
