// Reductions over a tile or a coalesced group.
#pragma once

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Group, class T, class Operation>
inline T reduce(const Group &group, T value, Operation &&operation) {
    return group.reduce(value, operation);
}

}  // namespace cooperative_groups
