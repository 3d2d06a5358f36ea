/* The allocator of the documentation with a log of its calls for tests. plugged.py depends on this layout. */
#include "../../docs/examples/pluggable_allocator.c"

enum { room = 4096 };

struct call {
    int64_t freed, size, device, stream, address;
};

struct call calls[room];
atomic_int number_of_calls;
int64_t most = INT64_MAX; /* larger requests are refused */
void *repeated;           /* if not NULL, returned instead of new memory */

static void note(int freed, ssize_t size, int device, void *stream, void *address) {
    const int number = atomic_fetch_add(&number_of_calls, 1);
    if (number < room)
        calls[number] = (struct call){freed, size, device, (intptr_t)stream, (intptr_t)address};
}

void *logged_alloc(ssize_t size, int device, void *stream) {
    void *memory = repeated;
    if (memory == NULL && size <= most)
        memory = example_alloc(size, device, stream);
    note(0, size, device, stream, memory);
    return memory;
}

void logged_free(void *memory, ssize_t size, int device, void *stream) {
    note(1, size, device, stream, memory);
    example_free(memory, size, device, stream);
}
