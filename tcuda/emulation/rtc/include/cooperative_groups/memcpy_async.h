// Asynchronous copies that the threads of a group share.
#pragma once

#include <cooperative_groups.h>

#include "tcuda/asynchronous_copies.h"

namespace cooperative_groups {

// Every thread copies a part of the bytes, and each call is a batch of its own.
template <class Group, class T>
TCUDA_AT_CALLER inline void memcpy_async(const Group &group, T *to, const T *from, size_t bytes) {
    const size_t unit = bytes % 4 == 0 ? 4 : 1;
    const size_t part = (bytes / unit + group.size() - 1) / group.size() * unit, begin = part * group.thread_rank();
    if (begin < bytes)
        ::tcuda::copy_later(reinterpret_cast<char *>(to) + begin, reinterpret_cast<const char *>(from) + begin,
                            part < bytes - begin ? part : bytes - begin, 0);
    ::tcuda::end_batch();
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
