// The contract between the core and a module: the shared library that the C++ compiler makes of CUDA C++ source.
// Both sides include this header. A change needs a new `version`.
#pragma once

// A function without checks of its own, which is a part of the checks of a module.
#ifndef TCUDA_UNSANITIZED
#define TCUDA_UNSANITIZED
#endif
#define TCUDA_NOTE inline TCUDA_UNSANITIZED __attribute__((always_inline))

namespace tcuda {
namespace abi {

// No header of the host is included: programs for NVRTC define names such as `int64_t` themselves.
using Address = __UINTPTR_TYPE__;

constexpr unsigned version = 11;
constexpr unsigned shared_capacity = 232448; // the most dynamic shared memory of a block, as on an H200
constexpr unsigned heap_capacity = 8u << 20;
constexpr unsigned slot_count = 256;         // a power of two
constexpr unsigned record_count = 128;       // a power of two
constexpr unsigned record_shift = 14;
constexpr unsigned record_bytes = 1u << record_shift;

struct Index {
    unsigned x, y, z;
};

struct Range { // [begin, end)
    Address begin, end;
};

struct Span {
    Address begin, bytes;
};

// Where a module notes the accesses to [begin, begin + bytes), which lies in one page of `record_bytes` bytes. The page
// has a bit for each byte that the kernel reads, and a bit for each byte that the kernel writes. The core looks at each
// read of the page if `read_bytes` is 0, and otherwise it equals `bytes`.
struct Record {
    Address begin, bytes;
    unsigned long long *reads, *writes;
    Address read_bytes;
};

// What an access does, for the search for races. The memory of `fresh` comes new from the heap. `compared` is no
// access: it comes before the access of a function that compares the memory with what the thread has read there before.
enum class Touch : unsigned {
    read,
    write,
    volatile_read,
    volatile_write,
    atomic_read,
    atomic_read_of_block,
    atomic_of_block,  // an update that is atomic for the threads of the block
    atomic_of_device, // an update that is atomic for all threads
    fresh,
    compared,
};

// Whose accesses a fence orders.
enum class Scope : unsigned { block, device };

// The slot of an access, by the place of the code behind the call that checks the access. Most places of a kernel use
// one array, so the accesses to an array do not take the slots of another. Two calls are at least 8 bytes apart.
TCUDA_NOTE unsigned slot_place(Address site) { return static_cast<unsigned>(site >> 3) % slot_count; }

TCUDA_NOTE unsigned record_place(Address address) {
    // Arrays often begin at multiples of a large power of two, so the lowest bits of a page say little.
    return static_cast<unsigned>((address >> record_shift) * 0x9e3779b97f4a7c15ull >> 32) % record_count;
}

struct RaceNotes; // tcuda_races.h

struct Parameter {
    // 'p' pointer, 'i' signed integer, 'u' unsigned integer, 'f' floating point, 'g' bfloat16, 'b' bool, 's' other
    char kind;
    unsigned size;
    unsigned offset; // the offset in the buffer of the arguments
};

struct Kernel {
    const char *name;                   // the name that the program has asked for
    const void *function;               // the address of the function
    void (*run)(const char *arguments); // runs threads of the current block until none is left to start
    const Parameter *parameters;
    unsigned parameter_count;
    unsigned argument_bytes;
    const Kernel *next;
};

// The threads of the current block that have not been started.
struct Cursor {
    // The first such thread while a thread waits. Otherwise the module may still have to start threads before this one.
    Index next;
    bool waited; // whether the running thread has waited, so that other threads may have been started meanwhile
};

struct Votes { // the votes of all threads that have reached a barrier of the block
    int count, all, any;
};

// Functions of the core that a module calls; `grid` is their first argument. Functions that wait let other threads of
// the block run.
struct Services {
    void *grid;
    Votes (*wait_for_block)(void *grid, int predicate);
    const unsigned long long *(*exchange)(void *grid, unsigned mask, unsigned long long value, unsigned *present);
    unsigned (*converge)(void *grid, const void *site);
    void (*pause)(void *grid);
    // Lets other threads run before the next look at a barrier of libcu++. `first` tells whether the wait begins.
    void (*await)(void *grid, bool first, const void *site);
    void (*step)(void *grid, bool write); // comes before an access to a volatile variable
    // Returns the memory that contains an access, or does not return. `site` is behind the call before the access.
    Span (*resolve)(void *grid, Address address, unsigned long long size, bool write, const void *site);
    // Comes right before an access of a module that is compiled for the search for races. Null if the launch does not
    // look for races.
    void (*touch)(void *grid, Address address, unsigned long long size, Touch touch, const void *site);
    void (*fence)(void *grid, Scope scope);
    // Does not return. `site` is null if `file` and `line` say where the failure is, and if nobody knows.
    void (*fail)(void *grid, const char *kind, const char *text, const char *file, int line, const char *function,
                 const void *site);
    // Comes before each thread, if the launch runs the threads in the order of a seed. Null otherwise.
    void (*park)(void *grid);
    bool mirrored; // whether the last thread of a block begins first; `Cursor` counts from that thread
    bool silent; // whether the kernel prints nothing
    unsigned long long launch; // the number of the launch in the process, if all blocks run at the same time; else 0
};

struct Module {
    unsigned version;
    Index *thread, *block, *block_dim, *grid_dim;
    Cursor *cursor;
    Services *services;
    Span *slots;          // [slot_count]: memory that accesses may use, by slot_place()
    Record *records;      // [record_count], by record_place(); without memory unless the launch records accesses
    RaceNotes *races;     // null if the module is not compiled for the search for races
    unsigned char *heap;  // [heap_capacity]: the memory of malloc and new
    char *dynamic_shared; // [shared_capacity]
    // The memory of the module that ends where the dynamic shared memory begins: the bytes that a kernel may read, and
    // those that a kernel may write.
    Address *own_bytes, *written_bytes;
    const char *headers_begin, *headers_end; // the variables of the headers, which a kernel must not write
    unsigned *dynamic_shared_size;
    bool *printed; // whether a thread has printed since the core last looked
    Range own;     // the variables of the headers, which are no shared memory of the kernel
    const Kernel *const *kernels;
};

} // namespace abi
} // namespace tcuda
