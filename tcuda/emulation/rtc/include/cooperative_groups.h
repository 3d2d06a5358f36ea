// Cooperative groups within a block: the block, tiles of a warp, the lanes of a warp that run together.
#pragma once

#include "tcuda/phases.h"

namespace cooperative_groups {

namespace details {

template <class T>
struct unsupported {
    static constexpr bool value = false;
};

// The threads of a warp in a mask, with the functions that tiles and coalesced groups share.
class lanes {
protected:
    unsigned int mask_;

    explicit lanes(unsigned int mask) : mask_(mask) {}

    unsigned int before() const {
        return mask_ & ((1u << ::tcuda::lane()) - 1);
    }
    // The lane of the member with a rank.
    int member(unsigned int rank) const {
        unsigned int rest = mask_;
        while (rank-- != 0 && rest != 0) rest &= rest - 1;
        return rest == 0 ? static_cast<int>(::tcuda::lane()) : __builtin_ctz(rest);
    }
    // The mask of the members, by rank, for a mask of lanes.
    unsigned int ranks(unsigned int chosen) const {
        unsigned int result = 0, place = 0;
        for (unsigned int rest = mask_; rest != 0; rest &= rest - 1, ++place) {
            if (chosen & rest & -rest) result |= 1u << place;
        }
        return result;
    }

public:
    static constexpr bool is_valid() {
        return true;
    }
    // The lanes of the members.
    unsigned int lanes_of_members() const {
        return mask_;
    }
    void sync() const {
        __syncwarp(mask_);
    }
    unsigned int thread_rank() const {
        return static_cast<unsigned int>(__builtin_popcount(before()));
    }
    unsigned int size() const {
        return static_cast<unsigned int>(__builtin_popcount(mask_));
    }
    unsigned int num_threads() const {
        return size();
    }
    template <class T>
    T shfl(T value, int rank) const {
        return ::tcuda::value_of_lane(mask_, value, member(static_cast<unsigned int>(rank) % size()));
    }
    template <class T>
    T shfl_up(T value, unsigned int delta) const {
        unsigned int rank = thread_rank();
        return ::tcuda::value_of_lane(mask_, value, member(rank < delta ? rank : rank - delta));
    }
    template <class T>
    T shfl_down(T value, unsigned int delta) const {
        unsigned int rank = thread_rank();
        return ::tcuda::value_of_lane(mask_, value, member(rank + delta >= size() ? rank : rank + delta));
    }
    template <class T>
    T shfl_xor(T value, unsigned int ranks) const {
        unsigned int rank = thread_rank() ^ ranks;
        return ::tcuda::value_of_lane(mask_, value, member(rank >= size() ? thread_rank() : rank));
    }
    int any(int predicate) const {
        return __any_sync(mask_, predicate);
    }
    int all(int predicate) const {
        return __all_sync(mask_, predicate);
    }
    unsigned int ballot(int predicate) const {
        return ranks(__ballot_sync(mask_, predicate));
    }
    template <class T>
    unsigned int match_any(T value) const {
        return ranks(__match_any_sync(mask_, value));
    }
    template <class T>
    unsigned int match_all(T value, int &all) const {
        return ranks(__match_all_sync(mask_, value, &all));
    }
    template <class T, class Operation>
    T reduce(T value, Operation operation) const {
        return ::tcuda::reduced(mask_, value, operation);
    }
    // The result of the members up to the calling thread; without the calling thread if `inclusive` is false.
    template <class T, class Operation>
    T scan(T value, Operation operation, bool inclusive, T first) const {
        unsigned int present = 0;
        const unsigned long long *values = ::tcuda::exchange(mask_, ::tcuda::packed(value), &present);
        unsigned int rest = (inclusive ? before() | 1u << ::tcuda::lane() : before()) & present;
        T result = first;
        bool found = false;
        for (; rest != 0; rest &= rest - 1) {
            T other = ::tcuda::unpacked<T>(values[__builtin_ctz(rest)]);
            result = found ? operation(result, other) : other;
            found = true;
        }
        return result;
    }
};

}  // namespace details

class thread_block {
public:
    static constexpr bool is_valid() {
        return true;
    }
    static void sync() {
        __syncthreads();
    }
    static unsigned int thread_rank() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    static unsigned int size() {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    static unsigned int num_threads() {
        return size();
    }
    static dim3 group_index() {
        return blockIdx;
    }
    static dim3 thread_index() {
        return threadIdx;
    }
    static dim3 group_dim() {
        return blockDim;
    }
    static dim3 dim_threads() {
        return blockDim;
    }
};

inline thread_block this_thread_block() {
    return {};
}

template <unsigned int count, class Parent = void>
class thread_block_tile : public details::lanes {
    static_assert(count != 0 && count <= 32 && (count & (count - 1)) == 0,
                  "on an emulated device a tile has 1, 2, 4, 8, 16 or 32 threads");

    unsigned int meta_rank_, meta_size_;

    static unsigned int lanes_of_tile() {
        return (count == 32 ? 0xffffffffu : (1u << count % 32) - 1) << (::tcuda::lane() / count * count);
    }

public:
    thread_block_tile(unsigned int meta_rank, unsigned int meta_size)
        : details::lanes(lanes_of_tile()), meta_rank_(meta_rank), meta_size_(meta_size) {}
    template <class Other>
    thread_block_tile(const thread_block_tile<count, Other> &other)
        : thread_block_tile(other.meta_group_rank(), other.meta_group_size()) {}

    // A tile has its nominal size even where the block ends before the tile.
    static unsigned int thread_rank() {
        return ::tcuda::lane() % count;
    }
    static constexpr unsigned int size() {
        return count;
    }
    static constexpr unsigned int num_threads() {
        return count;
    }
    unsigned int meta_group_rank() const {
        return meta_rank_;
    }
    unsigned int meta_group_size() const {
        return meta_size_;
    }
};

template <unsigned int count, class Parent>
inline thread_block_tile<count, Parent> tiled_partition(const Parent &parent) {
    return {parent.thread_rank() / count, (parent.size() + count - 1) / count};
}

class coalesced_group : public details::lanes {
    unsigned int meta_rank_, meta_size_;

public:
    explicit coalesced_group(unsigned int mask, unsigned int meta_rank = 0, unsigned int meta_size = 1)
        : details::lanes(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
    unsigned int meta_group_rank() const {
        return meta_rank_;
    }
    unsigned int meta_group_size() const {
        return meta_size_;
    }
};

// Any of the groups above: for functions that take a group of any kind, and for tiles whose size is known at run time.
class thread_group : details::lanes {
    bool block_;

public:
    using details::lanes::is_valid;
    using details::lanes::lanes_of_members;
    thread_group(const thread_block &) : details::lanes(0), block_(true) {}
    thread_group(const details::lanes &group) : details::lanes(group), block_(false) {}
    void sync() const {
        if (block_)
            thread_block::sync();
        else
            details::lanes::sync();
    }
    unsigned int thread_rank() const {
        return block_ ? thread_block::thread_rank() : details::lanes::thread_rank();
    }
    unsigned int size() const {
        return block_ ? thread_block::size() : details::lanes::size();
    }
    unsigned int num_threads() const {
        return size();
    }
    // The tile of `count` members to which the calling thread belongs.
    thread_group tile(unsigned int count) const {
        unsigned int members = block_ ? 0xffffffffu : lanes_of_members(), chosen = 0;
        unsigned int before = members & ((1u << ::tcuda::lane()) - 1);
        unsigned int first = static_cast<unsigned int>(__builtin_popcount(before)) / count * count;
        for (unsigned int rank = 0; members != 0; members &= members - 1, ++rank) {
            if (rank >= first && rank - first < count) chosen |= members & -members;
        }
        return coalesced_group(chosen);
    }
};

inline thread_group tiled_partition(const thread_group &parent, unsigned int count) {
    return parent.tile(count);
}
inline coalesced_group tiled_partition(const coalesced_group &parent, unsigned int count) {
    return coalesced_group(thread_group(parent).tile(count).lanes_of_members());
}

// The members of a tile or of a coalesced group with equal labels. As with CUDA's own header, the rank of such a group is
// the distance of its first lane from the first lane of the parent.
template <class Parent, class Label>
inline coalesced_group labeled_partition(const Parent &parent, Label label) {
    static_assert(static_cast<Label>(0.5) == static_cast<Label>(0), "a label is an integer");
    const unsigned int members = parent.lanes_of_members();
    const unsigned int group = __match_any_sync(members, static_cast<long long>(label));
    const unsigned int first = group & -group;
    const unsigned int leaders = __ballot_sync(members, first == 1u << ::tcuda::lane());
    return coalesced_group(group, static_cast<unsigned int>(__builtin_ctz(first) - __builtin_ctz(members)),
                           static_cast<unsigned int>(__builtin_popcount(leaders)));
}
// The members with the same predicate as the calling thread.
template <class Parent>
inline coalesced_group binary_partition(const Parent &parent, bool predicate) {
    const unsigned int members = parent.lanes_of_members();
    const unsigned int yes = __ballot_sync(members, predicate), no = members & ~yes;
    if (yes == 0 || no == 0)
        return coalesced_group(yes | no);
    return coalesced_group(predicate ? yes : no, predicate, 2);
}

// The core tells by the place of a call which lanes meet there, so the function must be a part of its caller.
__forceinline__ coalesced_group coalesced_threads() {
    return coalesced_group(__activemask());
}

template <class Group>
inline void sync(const Group &group) {
    group.sync();
}
template <class Group>
inline unsigned int thread_rank(const Group &group) {
    return group.thread_rank();
}
template <class Group>
inline unsigned int group_size(const Group &group) {
    return group.size();
}

namespace details {

// The barrier of the whole grid, which is memory of the device. A launch that has failed may leave any contents.
template <class T = void>
struct grid_barrier {
    TCUDA_HIDDEN static ::tcuda::PhaseWord word;
    TCUDA_HIDDEN TCUDA_OWN static unsigned long long launch;
};
template <class T>
::tcuda::PhaseWord grid_barrier<T>::word;
template <class T>
unsigned long long grid_barrier<T>::launch;

}  // namespace details

// The blocks of the grid.
class grid_group {
public:
    template <class T = void>
    __forceinline__ static void sync() {
        __syncthreads();
        if (thread_block::thread_rank() == 0) meet<T>();
        __syncthreads();
    }
    // Only a cooperative launch makes a grid whose threads can meet.
    static bool is_valid() {
        return ::tcuda::services.launch != 0;
    }
    static unsigned long long block_rank() {
        unsigned long long columns = gridDim.x, rows = gridDim.y;
        return blockIdx.x + columns * (blockIdx.y + rows * blockIdx.z);
    }
    static unsigned long long num_blocks() {
        return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
    }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    static unsigned long long size() {
        return num_blocks() * thread_block::size();
    }
    static unsigned long long num_threads() {
        return size();
    }
    static dim3 block_index() {
        return blockIdx;
    }
    static dim3 dim_blocks() {
        return gridDim;
    }
    static dim3 group_dim() {
        return gridDim;
    }

private:
    template <class T>
    TCUDA_UNSANITIZED __attribute__((noinline)) static void meet() {
        using Barrier = details::grid_barrier<T>;
        const void *site = __builtin_return_address(0);
        if (!is_valid())
            ::tcuda::fail("trap",
                          "this_grid().sync() needs a cooperative launch: pass enable_cooperative_groups=True to RawKernel "
                          "or RawModule, or call the method sync() of the group in a kernel of cupyx.jit",
                          "", 0, "", site);
        if (Barrier::launch != ::tcuda::services.launch) {
            Barrier::launch = ::tcuda::services.launch;
            Barrier::word.value = ::tcuda::PhaseWord::of(num_blocks(), false);
        }
        const ::tcuda::NoCompletion none;
        ::tcuda::fence(::tcuda::abi::Scope::device);
        const bool odd = ::tcuda::arrive(Barrier::word, ::tcuda::abi::Scope::device, 1, site, 0, none);
        for (bool first = true; !::tcuda::has_ended(Barrier::word, ::tcuda::abi::Scope::device, odd, site); first = false)
            ::tcuda::services.await(::tcuda::services.grid, first, site);
    }
};

inline grid_group this_grid() {
    return {};
}

// Only the launch of a whole grid at once has the groups below.
#define TCUDA_NO_GROUP(name, type) \
    class type {}; \
    template <class T = void> \
    inline type name() { \
        static_assert(details::unsupported<T>::value, \
                      #name " is not available on an emulated device"); \
        return {}; \
    }
TCUDA_NO_GROUP(this_multi_grid, multi_grid_group)
TCUDA_NO_GROUP(this_cluster, cluster_group)
#undef TCUDA_NO_GROUP

#define TCUDA_FUNCTOR(name, expression) \
    template <class T> \
    struct name { \
        T operator()(T a, T b) const { \
            return expression; \
        } \
    };
TCUDA_FUNCTOR(plus, a + b)
TCUDA_FUNCTOR(less, b < a ? b : a)
TCUDA_FUNCTOR(greater, a < b ? b : a)
TCUDA_FUNCTOR(bit_and, a & b)
TCUDA_FUNCTOR(bit_or, a | b)
TCUDA_FUNCTOR(bit_xor, a ^ b)
#undef TCUDA_FUNCTOR

}  // namespace cooperative_groups
