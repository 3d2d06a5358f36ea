// A search tree that is linked through its members: no function allocates host memory, and none can fail.
#pragma once

#include <cstdint>

#include "memory/allocator/address_hash.hpp"

namespace tcuda {

// A treap: a search tree by `Less`, and a heap by a hash of the addresses. The hash keeps the tree balanced on average.
template <typename Node, typename Less> class BlockTree {
public:
    bool empty() const { return root_ == nullptr; }

    void insert(Node *node) {
        Node **place = &root_;
        while (*place != nullptr && rank(*place) > rank(node))
            place = Less()(node, *place) ? &(*place)->left : &(*place)->right;
        Node *below = *place;
        *place = node;
        Node **less = &node->left, **more = &node->right;
        while (below != nullptr) { // divides the subtree that was here between the two sides of the node
            if (Less()(below, node)) {
                *less = below;
                less = &below->right;
                below = below->right;
            } else {
                *more = below;
                more = &below->left;
                below = below->left;
            }
        }
        *less = *more = nullptr;
    }

    void erase(Node *node) {
        Node **place = &root_;
        while (*place != node)
            place = Less()(node, *place) ? &(*place)->left : &(*place)->right;
        Node *left = node->left, *right = node->right;
        while (left != nullptr && right != nullptr) { // joins the two sides of the node
            if (rank(left) > rank(right)) {
                *place = left;
                place = &left->right;
                left = left->right;
            } else {
                *place = right;
                place = &right->left;
                right = right->left;
            }
        }
        *place = left != nullptr ? left : right;
        node->left = node->right = nullptr;
    }

    // The first node that is `enough`; null if there is none. Every node behind such a node must be `enough` too.
    template <typename Enough> Node *first(Enough enough) const {
        Node *found = nullptr;
        for (Node *node = root_; node != nullptr;) {
            if (enough(node)) {
                found = node;
                node = node->left;
            } else {
                node = node->right;
            }
        }
        return found;
    }

    // The first node, in order, that is `wanted`; null if there is none.
    template <typename Wanted> Node *find(Wanted wanted) const { return find(root_, wanted); }

    template <typename Visit> void each(Visit &&visit) const {
        find([&](Node *node) {
            visit(node);
            return false;
        });
    }

private:
    static std::uint64_t rank(const Node *node) { return hash_of(node->address); }

    template <typename Wanted> static Node *find(Node *node, Wanted &wanted) {
        if (node == nullptr)
            return nullptr;
        if (Node *found = find(node->left, wanted))
            return found;
        return wanted(node) ? node : find(node->right, wanted);
    }

    Node *root_ = nullptr;
};

} // namespace tcuda
