/* An allocator for tcuda.CUDAPluggableAllocator that counts the bytes in use. The file needs no CUDA header:
 *
 *     cc -shared -fPIC -o pluggable_allocator.so pluggable_allocator.c -ldl
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

static atomic_llong bytes_in_use; /* atomic, because several threads may call at the same time */

static void *driver(const char *function) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == NULL ? NULL : dlsym(library, function);
}

/* Memory of a GPU comes from the CUDA driver. Memory of an emulated device comes from the host. On a GPU, the device of an
 * allocation has a context, which is current in the calling thread. A process with emulated devices has no such context.
 * The answer is asked once, because all devices of a process are of one kind. */
static int emulated(void) {
    static atomic_int known; /* 1 on a GPU, 2 on emulated devices */
    if (atomic_load(&known) == 0) {
        int (*current_context)(void **) = (int (*)(void **))driver("cuCtxGetCurrent");
        void *context = NULL;
        atomic_store(&known, current_context != NULL && current_context(&context) == 0 && context != NULL ? 1 : 2);
    }
    return atomic_load(&known) == 2;
}

/* Returns `size` bytes for use on `stream` (a cudaStream_t) of `device`, the current device; NULL if memory is short. */
void *example_alloc(ssize_t size, int device, void *stream) {
    (void)device, (void)stream;
    void *memory = NULL;
    if (emulated()) {
        if (posix_memalign(&memory, 512, (size_t)size) != 0)
            return NULL;
    } else {
        int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))driver("cuMemAlloc_v2");
        uint64_t address;
        if (allocate(&address, (size_t)size) != 0)
            return NULL;
        memory = (void *)(uintptr_t)address;
    }
    atomic_fetch_add(&bytes_in_use, size);
    return memory;
}

/* Frees memory that example_alloc() returned. Size and stream are those of the allocation. */
void example_free(void *memory, ssize_t size, int device, void *stream) {
    (void)device, (void)stream;
    atomic_fetch_sub(&bytes_in_use, size);
    if (emulated())
        free(memory);
    else
        ((int (*)(uint64_t))driver("cuMemFree_v2"))((uint64_t)(uintptr_t)memory);
}

/* A program calls this function by ctypes.CDLL("./pluggable_allocator.so").example_bytes_in_use(). */
long long example_bytes_in_use(void) { return atomic_load(&bytes_in_use); }
