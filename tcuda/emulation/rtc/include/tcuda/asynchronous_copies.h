// Asynchronous copies: a thread carries its copies out as late as the waits of the kernel allow. So a kernel without a
// needed wait does not have the copied bytes, and the search for races sees the copy behind the missing wait.
#pragma once

#include "tcuda/phases.h"

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

// The arrival of a thread at a barrier of its block, when the copies of the thread before `end` have been carried out.
struct LateArrival {
    PhaseWord *word;
    unsigned int end;
    const void *site;
};

// The late arrivals of a thread, the oldest first.
struct LateArrivals {
    static constexpr unsigned int most = 32;
    LateArrival arrivals[most];
    unsigned int first, count;
};

static AsynchronousCopies asynchronous_copies[1024];
static LateArrivals late_arrivals[1024];
static unsigned int late_arrivals_of_block;

inline TCUDA_UNSANITIZED AsynchronousCopies &copies_of_thread() {
    return asynchronous_copies[rank_in_block()];
}

// `noted` tells whether the search for races sees the copy.
inline TCUDA_UNSANITIZED void carry_out_oldest(AsynchronousCopies &all, bool noted = true) {
    const AsynchronousCopy &copy = all.copies[all.first % AsynchronousCopies::most];
    if (noted) {
        check_bytes(copy.from, copy.size - copy.zeros, false, copy.site);
        check_bytes(copy.to, copy.size, true, copy.site);
    }
    tcuda_host_memmove(copy.to, copy.from, copy.size - copy.zeros);
    tcuda_host_memset(static_cast<char *>(copy.to) + (copy.size - copy.zeros), 0, copy.zeros);
    ++all.first;
    --all.count;
}

// The site is the place of the call, which is a part of the kernel.
inline TCUDA_UNSANITIZED __attribute__((noinline)) void copy_later(void *to, const void *from, size_t size,
                                                                   size_t zeros) {
    AsynchronousCopies &all = copies_of_thread();
    // A copy may take place at any time up to its wait. So the search for races sees the copy at both ends of this time.
    check_bytes(from, size - zeros, false, __builtin_return_address(0));
    check_bytes(to, size, true, __builtin_return_address(0));
    if (all.count == AsynchronousCopies::most)
        carry_out_oldest(all);
    all.copies[(all.first + all.count++) % AsynchronousCopies::most] = {to,    from,      size,
                                                                        zeros, all.batch, __builtin_return_address(0)};
}

inline TCUDA_UNSANITIZED void end_batch() {
    ++copies_of_thread().batch;
}

// Copies the part of the calling thread in a group: a multiple of four bytes, if the size is one.
template <class Group>
__forceinline__ void copy_part_later(const Group &group, void *to, const void *from, size_t bytes) {
    const size_t unit = bytes % 4 == 0 ? 4 : 1;
    const size_t part = (bytes / unit + group.size() - 1) / group.size() * unit, begin = part * group.thread_rank();
    if (begin < bytes)
        copy_later(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin,
                   part < bytes - begin ? part : bytes - begin, 0);
}

// Waits for all batches of this thread but the last `later`.
inline TCUDA_UNSANITIZED void wait_for_batches(unsigned int later) {
    AsynchronousCopies &all = copies_of_thread();
    while (all.count != 0 && all.copies[all.first % AsynchronousCopies::most].batch + later < all.batch)
        carry_out_oldest(all);
}

// Carries out the copies of a thread of the block up to its oldest late arrival, and the arrival.
inline TCUDA_UNSANITIZED void carry_out_arrival(unsigned int thread) {
    LateArrivals &late = late_arrivals[thread];
    const LateArrival arrival = late.arrivals[late.first % LateArrivals::most];
    ++late.first;
    --late.count;
    --late_arrivals_of_block;
#ifdef TCUDA_RACES
    // Another thread does this at its wait, so that no thread waits for a copy that nobody carries out.
    const unsigned int running = race_notes.thread;
    race_notes.thread = thread;
#endif
    AsynchronousCopies &all = asynchronous_copies[thread];
    // The arrival tells others nothing of the copies that the thread has begun later.
    const bool is_last = all.first + all.count == arrival.end;
    while (all.count != 0 && static_cast<int>(all.first - arrival.end) < 0) carry_out_oldest(all, is_last);
    if (is_last)
        fence(abi::Scope::block);
    const NoCompletion none;
    arrive(*arrival.word, abi::Scope::block, 1, arrival.site, 0, none);
#ifdef TCUDA_RACES
    race_notes.thread = running;
#endif
}

// Lets the running thread arrive at the barrier when the copies that it has made so far have been carried out.
inline TCUDA_UNSANITIZED __attribute__((noinline)) void arrive_later(PhaseWord &word) {
    const unsigned int thread = rank_in_block();
    LateArrivals &late = late_arrivals[thread];
    if (late.count == LateArrivals::most)
        carry_out_arrival(thread);
    fence(abi::Scope::block);
    const AsynchronousCopies &all = asynchronous_copies[thread];
    late.arrivals[(late.first + late.count++) % LateArrivals::most] = {&word, all.first + all.count,
                                                                                 __builtin_return_address(0)};
    ++late_arrivals_of_block;
}

// Carries out all late arrivals of the block at the barrier, which a thread waits for. False if there are none.
inline TCUDA_UNSANITIZED bool carry_out_arrivals(const PhaseWord &word) {
    bool any = false;
    for (unsigned int thread = 0; late_arrivals_of_block != 0 && thread < threads_of_block(); ++thread) {
        const LateArrivals &late = late_arrivals[thread];
        for (unsigned int place = late.count; place != 0; --place) {
            if (late.arrivals[(late.first + place - 1) % LateArrivals::most].word != &word) continue;
            while (place-- != 0) carry_out_arrival(thread);
            any = true;
            break;
        }
    }
    return any;
}

template <typename... Types>
struct AroundThread<void (*)(Types...)> {
    static TCUDA_UNSANITIZED void begin() {
        const unsigned int thread = rank_in_block();
        // Of a block before, which may have ended in the middle.
        late_arrivals_of_block -= late_arrivals[thread].count;
        late_arrivals[thread].first = late_arrivals[thread].count = 0;
        copies_of_thread().first = copies_of_thread().count = copies_of_thread().batch = 0;
    }
    static TCUDA_UNSANITIZED void end() {
        while (late_arrivals[rank_in_block()].count != 0) carry_out_arrival(rank_in_block());
        while (copies_of_thread().count != 0) carry_out_oldest(copies_of_thread());
    }
};

}  // namespace tcuda
