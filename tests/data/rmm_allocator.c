/* The two functions of RMM's library for torch's pluggable allocator, on the allocator of the documentation. */
#include "../../docs/examples/pluggable_allocator.c"
#include <stddef.h>

static atomic_llong allocations, frees;
static atomic_llong last_size, last_stream;

void *allocate(size_t size, int device, void *stream) {
    atomic_fetch_add(&allocations, 1);
    atomic_store(&last_size, (long long)size);
    atomic_store(&last_stream, (long long)(intptr_t)stream);
    return example_alloc((ssize_t)size, device, stream);
}

void deallocate(void *memory, size_t size, int device, void *stream) {
    atomic_fetch_add(&frees, 1);
    example_free(memory, (ssize_t)size, device, stream);
}

/* Writes the numbers of allocations and frees, and the size and the stream of the last allocation. */
void seen(long long *numbers) {
    numbers[0] = atomic_load(&allocations);
    numbers[1] = atomic_load(&frees);
    numbers[2] = atomic_load(&last_size);
    numbers[3] = atomic_load(&last_stream);
}
