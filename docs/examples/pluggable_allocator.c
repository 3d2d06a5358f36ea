/* An allocator for tcuda.CUDAPluggableAllocator that counts the bytes in use. The file needs no CUDA header:
 *
 *     cc -shared -fPIC -o pluggable_allocator.so pluggable_allocator.c -ldl
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static atomic_llong bytes_in_use; /* atomic, because several threads may call at the same time */

/* Memory of a GPU comes from the CUDA driver. Memory of an emulated device comes from the host. */
static int emulated(void) {
    const char *runtime = getenv("TCUDA_RUNTIME");
    return runtime != NULL && strcmp(runtime, "emulated") == 0;
}

static void *driver(const char *function) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), function); }

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
