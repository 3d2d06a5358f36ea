// Asynchronous copies: a thread carries its copies out as late as the waits of the kernel allow. So a kernel without a
// needed wait does not have the copied bytes, and the search for races sees the copy behind the missing wait.
#pragma once

#include "tcuda/device.h"

namespace tcuda {

struct AsynchronousCopy {
    void *to;
    const void *from;
    size_t size, zeros;  // `zeros` are bytes at the end of `size` that become 0.
    unsigned int batch;
    const void *site;
};

// The copies of a thread, the oldest first.
struct AsynchronousCopies {
    static constexpr unsigned int most = 32;
    AsynchronousCopy copies[most];
    unsigned int first, count, batch;
};

static AsynchronousCopies asynchronous_copies[1024];

inline TCUDA_UNSANITIZED AsynchronousCopies &copies_of_thread() {
    return asynchronous_copies[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)];
}

inline TCUDA_UNSANITIZED void carry_out_oldest(AsynchronousCopies &all) {
    const AsynchronousCopy &copy = all.copies[all.first % AsynchronousCopies::most];
    moved(copy.to, copy.from, copy.size - copy.zeros, copy.site);
    void *rest = static_cast<char *>(copy.to) + (copy.size - copy.zeros);
    check_bytes(rest, copy.zeros, true, copy.site);
    tcuda_host_memset(rest, 0, copy.zeros);
    ++all.first;
    --all.count;
}

// The site is the place of the call, which is a part of the kernel.
inline TCUDA_UNSANITIZED __attribute__((noinline)) void copy_later(void *to, const void *from, size_t size,
                                                                   size_t zeros) {
    AsynchronousCopies &all = copies_of_thread();
    // A copy may take place at any time up to its wait. So the search for races sees the copy at both ends of this time.
    touch(reinterpret_cast<abi::Address>(from), size - zeros, abi::Touch::read, __builtin_return_address(0));
    touch(reinterpret_cast<abi::Address>(to), size, abi::Touch::write, __builtin_return_address(0));
    if (all.count == AsynchronousCopies::most)
        carry_out_oldest(all);
    all.copies[(all.first + all.count++) % AsynchronousCopies::most] = {to,    from,      size,
                                                                        zeros, all.batch, __builtin_return_address(0)};
}

inline TCUDA_UNSANITIZED void end_batch() {
    ++copies_of_thread().batch;
}

// Waits for all batches of this thread but the last `later`.
inline TCUDA_UNSANITIZED void wait_for_batches(unsigned int later) {
    AsynchronousCopies &all = copies_of_thread();
    while (all.count != 0 && all.copies[all.first % AsynchronousCopies::most].batch + later < all.batch)
        carry_out_oldest(all);
}

template <typename... Types>
struct AroundThread<void (*)(Types...)> {
    static TCUDA_UNSANITIZED void begin() {
        copies_of_thread().first = copies_of_thread().count = copies_of_thread().batch = 0;
    }
    static TCUDA_UNSANITIZED void end() {
        while (copies_of_thread().count != 0) carry_out_oldest(copies_of_thread());
    }
};

}  // namespace tcuda
