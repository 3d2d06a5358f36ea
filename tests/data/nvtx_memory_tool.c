/* A tool that writes what it hears by NVTX's extension for memory, one line for each call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct table { size_t id, count; intptr_t *functions; };
struct module {
    uint16_t version, size, module, module_version;
    size_t table_count;
    struct table *tables;
    void *export_function;
    const void *information;
};
struct range { size_t size; const char *address; };
struct heap {
    uint16_t version, size;
    uint32_t reserved, usage, type;
    size_t range_size;
    const struct range *range;
    uint32_t category, message_type;
    const void *message;
};
struct new_regions {
    uint16_t version, size;
    uint32_t type;
    void *heap;
    size_t count, element_size;
    const struct range *ranges;
    void **handles;
};
struct old_regions {
    uint16_t version, size;
    uint32_t type;
    size_t count, element_size;
    const char *const *addresses;
};

static intptr_t heaps = 0;

static void *register_heap(void *domain, const struct heap *heap) {
    int right = heap->version == 0x0102 && heap->size == sizeof *heap && heap->usage == 1 && heap->type == 1 &&
                heap->range_size == sizeof(struct range);
    fprintf(stderr, "heap %d %zu %p %ld\n", right, heap->range->size, (void *)heap->range->address, ++heaps);
    return (void *)heaps;
}

static void unregister_heap(void *domain, void *heap) { fprintf(stderr, "no heap %ld\n", (intptr_t)heap); }

static void register_regions(void *domain, const struct new_regions *regions) {
    int right = regions->version == 0x0102 && regions->size == sizeof *regions && regions->type == 1 &&
                regions->count == 1 && regions->element_size == sizeof(struct range);
    fprintf(stderr, "region %d %zu %p %ld\n", right, regions->ranges->size, (void *)regions->ranges->address,
            (intptr_t)regions->heap);
}

static void unregister_regions(void *domain, const struct old_regions *regions) {
    int right = regions->version == 0x0102 && regions->size == sizeof *regions && regions->type == 1 &&
                regions->count == 1 && regions->element_size == sizeof(char *);
    fprintf(stderr, "no region %d %p\n", right, (void *)regions->addresses[0]);
}

int InitializeInjectionNvtxExtension(struct module *module) {
    if (module->version != 3 || module->size != sizeof *module || module->module != 1 || getenv("TOOL_REFUSES"))
        return 0;
    intptr_t *functions = module->tables[0].functions;
    functions[0] = (intptr_t)register_heap;
    functions[1] = (intptr_t)unregister_heap;
    functions[3] = (intptr_t)register_regions;
    functions[5] = (intptr_t)unregister_regions;
    return 1;
}
