// Asynchronous copies that the threads of a group share.
#pragma once

#include <cooperative_groups.h>

#include "tcuda/asynchronous_copies.h"

namespace cooperative_groups {

// Every thread copies a part of the bytes, and each call is a batch of its own.
template <class Group, class T, class Size>
__forceinline__ void memcpy_async(const Group &group, T *to, const T *from, const Size &bytes) {
    ::tcuda::copy_part_later(group, to, from, bytes);
    ::tcuda::end_batch();
}
// The counts are numbers of elements, of which the smaller one is copied.
template <class Group, class T, class To, class From>
__forceinline__ void memcpy_async(const Group &group, T *to, const To &to_count, const T *from,
                                  const From &from_count) {
    const size_t room = to_count, found = from_count;
    memcpy_async(group, to, from, (room < found ? room : found) * sizeof(T));
}
template <unsigned int later, class Group>
inline void wait_prior(const Group &group) {
    ::tcuda::wait_for_batches(later);
    group.sync();
}
template <class Group>
inline void wait(const Group &group) {
    wait_prior<0>(group);
}

}  // namespace cooperative_groups
