// Lists that are linked through their members: no function allocates host memory, and none can fail.
#pragma once

namespace tcuda {

// The links of a member in one list.
template <typename Member> struct Links {
    Member *before = nullptr, *after = nullptr;
    bool in_list = false;
};

// A list of members, without an order. `links` is the member's Links for this list.
template <typename Member, Links<Member> Member::*links> class LinkedList {
public:
    // Adds a member, unless it is in the list.
    void add(Member &member) {
        Links<Member> &own = member.*links;
        if (own.in_list)
            return;
        own = {nullptr, first_, true};
        if (first_ != nullptr)
            (first_->*links).before = &member;
        first_ = &member;
    }

    // Removes a member, if it is in the list.
    void remove(Member &member) {
        Links<Member> &own = member.*links;
        if (!own.in_list)
            return;
        (own.before != nullptr ? (own.before->*links).after : first_) = own.after;
        if (own.after != nullptr)
            (own.after->*links).before = own.before;
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

private:
    Member *first_ = nullptr;
};

} // namespace tcuda
