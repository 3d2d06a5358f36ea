// Asynchronous copies from global to shared memory, each by one thread.
#pragma once

#include "tcuda/asynchronous_copies.h"

TCUDA_AT_CALLER inline void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0) {
    if ((size != 4 && size != 8 && size != 16) || zeros > size)
        ::tcuda::fail("assert", "__pipeline_memcpy_async copies 4, 8 or 16 bytes, of which it fills not more with zeros");
    ::tcuda::copy_later(to, from, size, zeros);
}
inline void __pipeline_commit() {
    ::tcuda::end_batch();
}
inline void __pipeline_wait_prior(size_t later) {
    ::tcuda::wait_for_batches(static_cast<unsigned int>(later));
}
