// Scans over a tile or a coalesced group.
#pragma once

#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Group, class T, class Operation>
inline T inclusive_scan(const Group &group, T value, Operation &&operation) {
    return group.scan(value, operation, true, T());
}
template <class Group, class T>
inline T inclusive_scan(const Group &group, T value) {
    return inclusive_scan(group, value, plus<T>());
}
template <class Group, class T, class Operation>
inline T exclusive_scan(const Group &group, T value, Operation &&operation) {
    return group.scan(value, operation, false, T());
}
template <class Group, class T>
inline T exclusive_scan(const Group &group, T value) {
    return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups
