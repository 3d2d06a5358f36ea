// Threads, barriers and checked accesses of the kernels of this module, through the services of the core.
#pragma once

#if defined(__clang__)
// Without the second attribute, clang adds checks to atomic functions in spite of the first.
#define TCUDA_UNSANITIZED                                                                                              \
    __attribute__((no_sanitize("address", "kernel-address", "thread", "undefined"), disable_sanitizer_instrumentation))
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1 // as gcc and later versions of clang do
#endif
#else
#define TCUDA_UNSANITIZED                                                                                              \
    __attribute__((no_sanitize("address", "kernel-address", "thread", "alignment", "bounds", "object-size",            \
                               "integer-divide-by-zero")))
#endif
#include "../../abi/tcuda_abi.h"
#ifdef TCUDA_RACES
#include "../../abi/tcuda_races.h"
#endif
#define TCUDA_HIDDEN __attribute__((visibility("hidden")))
#ifdef TCUDA_SUPPORT_ONLY
#define TCUDA_VARIABLE extern TCUDA_HIDDEN
#else
#define TCUDA_VARIABLE TCUDA_HIDDEN
#endif

// Functions of the headers need no check, but a function that differs from its caller in this is not inlined. The usual
// checks leave out the variables of the module by themselves.
#ifdef __SANITIZE_THREAD__
#define TCUDA_UNRECORDED TCUDA_UNSANITIZED
#else
#define TCUDA_UNRECORDED
#endif

// Kernels do not race for the variables of the headers, and must not write them. So these variables lie together.
#define TCUDA_OWN __attribute__((section("tcuda_own")))

// The linker knows the bounds of the variables of the headers.
extern "C" TCUDA_HIDDEN char __start_tcuda_own[], __stop_tcuda_own[];

TCUDA_VARIABLE TCUDA_OWN uint3 threadIdx;
namespace tcuda {
// The compiler takes a constant of another file for constant only if its type has no constructor, unlike dim3.
struct Extent : uint3 {};
} // namespace tcuda

// The core writes these variables under other names. No function of a kernel runs longer than a block, so each finds
// them constant, and the compiler loads them once for all threads.
extern TCUDA_HIDDEN const uint3 blockIdx __asm__("tcuda_block_index");
extern TCUDA_HIDDEN const tcuda::Extent blockDim __asm__("tcuda_block_size"), gridDim __asm__("tcuda_grid_size");
static const int warpSize = 32;

namespace tcuda {

TCUDA_VARIABLE TCUDA_OWN abi::Index block_index __asm__("tcuda_block_index");
TCUDA_VARIABLE TCUDA_OWN abi::Index block_size __asm__("tcuda_block_size"), grid_size __asm__("tcuda_grid_size");
TCUDA_VARIABLE TCUDA_OWN abi::Cursor cursor;
TCUDA_VARIABLE TCUDA_OWN abi::Services services;
// The alignment leaves no variable of the headers in the last page of constant variables, which lie before.
TCUDA_VARIABLE TCUDA_OWN __attribute__((aligned(4096))) abi::Span slots[abi::slot_count];
TCUDA_VARIABLE TCUDA_OWN abi::Record records[abi::record_count];
TCUDA_VARIABLE TCUDA_OWN abi::Address own_bytes, written_bytes;
#ifdef TCUDA_RACES
TCUDA_VARIABLE TCUDA_OWN abi::RaceNotes race_notes;
#endif
TCUDA_VARIABLE TCUDA_OWN unsigned shared_size;
TCUDA_VARIABLE TCUDA_OWN bool printed;
TCUDA_VARIABLE TCUDA_OWN const abi::Kernel *kernels;
extern TCUDA_HIDDEN unsigned char heap_bytes[abi::heap_capacity];
// `extern __shared__` arrays outside of functions have this label.
extern TCUDA_HIDDEN char shared_memory[abi::shared_capacity] __asm__("tcuda_dynamic_shared");
#ifndef TCUDA_SUPPORT_ONLY
alignas(4096) TCUDA_HIDDEN char shared_memory[abi::shared_capacity];
#endif

// Threads

// Begins the threads of the block that have the same y and z as the first that has not been started. False if all
// threads have been started.
inline TCUDA_UNSANITIZED __attribute__((noinline)) bool begin_row() {
    abi::Index &next = cursor.next;
    if (next.z == blockDim.z)
        return false;
    threadIdx = {next.x, next.y, next.z};
#ifdef TCUDA_RACES
    if (services.mirrored) {
        threadIdx.y = blockDim.y - 1 - next.y;
        threadIdx.z = blockDim.z - 1 - next.z;
    }
#endif
    next.x = 0;
    if (++next.y == blockDim.y) {
        next.y = 0;
        ++next.z;
    }
    cursor.waited = false;
    return true;
}

inline TCUDA_UNRECORDED void begin_thread(unsigned x) {
#ifdef TCUDA_RACES
    if (services.mirrored)
        x = blockDim.x - 1 - x;
#endif
    // The core reads the variable when a check calls the core, which the compiler does not expect of a check.
    const_cast<volatile unsigned &>(threadIdx.x) = x;
#ifdef TCUDA_RACES
    race_notes.thread = x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (services.park != nullptr)
        services.park(services.grid);
#endif
}

// Whether the running thread has waited, so that other threads may have been started.
inline TCUDA_UNRECORDED bool has_waited() { return const_cast<volatile bool &>(cursor.waited); }

inline unsigned lane() {
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

inline const unsigned long long *exchange(unsigned mask, unsigned long long value, unsigned *present) {
    return services.exchange(services.grid, mask, value, present);
}

inline __attribute__((noinline)) unsigned live_lanes() {
    return services.converge(services.grid, __builtin_return_address(0));
}

inline void pause() { services.pause(services.grid); }

// Comes before an access to a volatile variable. Variables of the module are initialised before the first launch.
inline TCUDA_UNSANITIZED void step(bool write) {
    if (services.step != nullptr)
        services.step(services.grid, write);
}

// Shared memory

inline void *dynamic_shared() {
    void *memory = shared_memory;
    // The array has the size of the largest launch. If the compiler knew the array, the compiler would leave out the
    // checks of accesses inside the array.
    __asm__("" : "+r"(memory));
    return memory;
}
inline unsigned dynamic_shared_size() { return shared_size; }

// Failures and output

[[noreturn]] inline void fail(const char *kind, const char *text, const char *file = "", int line = 0,
                              const char *function = "", const void *site = nullptr) {
    services.fail(services.grid, kind, text, file, line, function, site);
    __builtin_unreachable();
}

[[noreturn]] inline void fail_assertion(const char *expression, const char *file, int line, const char *function) {
    fail("assert", expression, file, line, function);
}

[[noreturn]] inline void trap() { fail("trap", ""); }

[[noreturn]] inline __attribute__((noinline, cold)) void fail_misaligned(abi::Address address, unsigned size, bool write,
                                                                         const void *site) {
    static char text[128];
    __builtin_snprintf(text, sizeof text, "Misaligned %s of size %u bytes at %#llx, which is no multiple of %u",
                       write ? "write" : "read", size, static_cast<unsigned long long>(address), size < 8 ? size : 8);
    fail("misaligned", text, "", 0, "", site);
}

// Accesses to memory: the compiler calls the functions of checks.h before each access.

inline TCUDA_UNSANITIZED abi::Span &slot_of(const void *site) {
    return slots[abi::slot_place(reinterpret_cast<abi::Address>(site))];
}

// Notes an access. False if the module has no record of the memory at hand.
inline TCUDA_UNSANITIZED bool note(abi::Address address, unsigned long long size, bool write) {
    const abi::Record &record = records[abi::record_place(address)];
    const abi::Address offset = address - record.begin;
    const unsigned bit = unsigned(address % abi::record_bytes), first = bit % 64;
    const abi::Address bytes = write ? record.bytes : record.read_bytes;
    if (offset >= bytes || bytes - offset < size || size - 1 >= 64 - first)
        return false;
    (write ? record.writes : record.reads)[bit / 64] |= ~0ull >> (64 - size) << first;
    return true;
}

// Memory with a record is in no slot, so that each access to the memory comes here. A launch that records nothing pays
// nothing for that.
inline TCUDA_UNSANITIZED __attribute__((noinline, cold)) void resolve(abi::Address address, unsigned long long size,
                                                                      bool write, const void *site) {
    // Variables of the module are initialised before the first launch.
    if (note(address, size, write) || services.resolve == nullptr)
        return;
    const abi::Span found = services.resolve(services.grid, address, size, write, site);
    // The beginning of a slot is aligned for each type, as access() expects.
    const abi::Address skipped = -found.begin % 16;
    slot_of(site) = {found.begin + skipped, found.bytes > skipped ? found.bytes - skipped : 0};
}

// `site` is behind the call of the function that checks an access: where the function returns to. Only a failure and the
// core look at the site.
#ifndef TCUDA_UNCHECKED
inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_alignment(abi::Address address, unsigned size,
                                                                             bool write, const void *site) {
    if (__builtin_expect(address % (size < 8 ? size : 8) != 0, 0))
        fail_misaligned(address, size, write, site);
}

inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check_slot(abi::Address address, unsigned long long size,
                                                                        bool write, const void *site) {
    const abi::Span &slot = slot_of(site);
    const abi::Address offset = address - slot.begin;
    if (__builtin_expect(offset >= slot.bytes || slot.bytes - offset < size, 0))
        resolve(address, size, write, site);
}

inline TCUDA_UNSANITIZED __attribute__((always_inline)) void check(abi::Address address, unsigned long long size,
                                                                   bool write, const void *site) {
    // The variables of the module lie before the dynamic shared memory.
    if (reinterpret_cast<abi::Address>(shared_memory) - 1 - address >= (write ? written_bytes : own_bytes))
        check_slot(address, size, write, site);
}
#else // The compiler calls the functions of checks.h only for the steps.
inline TCUDA_UNSANITIZED void check_alignment(abi::Address, unsigned, bool, const void *) {}
inline TCUDA_UNSANITIZED void check(abi::Address, unsigned long long, bool, const void *) {}
#endif

// Kernels

template <typename T> struct KindOf {
    static constexpr char value = __is_class(T) || __is_union(T) ? 's' : __is_enum(T) ? 'i' : 'p';
};
#define TCUDA_KIND(type, letter)                                                                                       \
    template <> struct KindOf<type> {                                                                                  \
        static constexpr char value = letter;                                                                          \
    };
TCUDA_KIND(bool, 'b')
TCUDA_KIND(char, 'i')
TCUDA_KIND(signed char, 'i')
TCUDA_KIND(short, 'i')
TCUDA_KIND(int, 'i')
TCUDA_KIND(long, 'i')
TCUDA_KIND(long long, 'i')
TCUDA_KIND(unsigned char, 'u')
TCUDA_KIND(unsigned short, 'u')
TCUDA_KIND(unsigned, 'u')
TCUDA_KIND(unsigned long, 'u')
TCUDA_KIND(unsigned long long, 'u')
TCUDA_KIND(float, 'f')
TCUDA_KIND(double, 'f')

template <unsigned... places> struct Places {};
template <unsigned count, unsigned... places> struct PlacesUpTo : PlacesUpTo<count - 1, count - 1, places...> {};
template <unsigned... places> struct PlacesUpTo<0, places...> {
    using type = Places<places...>;
};

template <unsigned count> struct Layout {
    abi::Parameter parameters[count == 0 ? 1 : count];
    unsigned bytes;
};

template <typename... Types> constexpr Layout<sizeof...(Types)> layout_of() {
    Layout<sizeof...(Types)> layout{};
    const char kinds[] = {KindOf<Types>::value..., 0};
    const unsigned sizes[] = {unsigned(sizeof(Types))..., 0};
    const unsigned alignments[] = {unsigned(alignof(Types))..., 1};
    unsigned end = 0;
    for (unsigned place = 0; place < sizeof...(Types); ++place) {
        const unsigned begin = (end + alignments[place] - 1) / alignments[place] * alignments[place];
        layout.parameters[place] = {kinds[place], sizes[place], begin};
        end = begin + sizes[place];
    }
    layout.bytes = end;
    return layout;
}

// What a thread does before and after its kernel. A header that a source includes may give a specialization.
template <typename Function> struct AroundThread {
    static void begin() {}
    static void end() {}
};

template <typename Function, Function function> struct Entry;

template <typename... Types, void (*function)(Types...)> struct Entry<void (*)(Types...), function> {
    static constexpr Layout<sizeof...(Types)> layout = layout_of<Types...>();

    static void run(const char *arguments) { run(arguments, typename PlacesUpTo<sizeof...(Types)>::type()); }

    template <unsigned... places> static TCUDA_UNSANITIZED void run(const char *arguments, Places<places...>) {
        run_each(*reinterpret_cast<const Types *>(arguments + layout.parameters[places].offset)...);
        (void)arguments;
    }

    // The number of a thread is in a register, because the next thread must not wait until the number is stored and
    // loaded.
    static void run_each(Types... arguments) {
        while (begin_row()) {
            unsigned x = threadIdx.x;
            do {
                begin_thread(x);
                AroundThread<void (*)(Types...)>::begin();
                function(arguments...); // Every thread has its own copy of the arguments.
                AroundThread<void (*)(Types...)>::end();
            } while (!has_waited() && ++x != blockDim.x);
        }
    }
};

// A global variable that a name expression names.
struct Variable {
    const void *address;
    unsigned long long bytes;
};

template <typename T> constexpr Variable variable_of(T *variable) {
    return {const_cast<const void *>(static_cast<const volatile void *>(variable)), sizeof(T)};
}
template <typename... Types> constexpr Variable variable_of(void (*)(Types...)) { return {nullptr, 0}; }

template <typename Entry> struct Registration;

template <typename Entry> struct KernelRegistration {
    abi::Kernel kernel;
    KernelRegistration(const char *name, const void *function)
        : kernel{name, function, Entry::run, Entry::layout.parameters, Count<decltype(Entry::layout)>::value,
                 Entry::layout.bytes, kernels} {
        kernels = &kernel;
    }

    template <typename Layout> struct Count;
    template <unsigned count> struct Count<const Layout<count>> {
        static constexpr unsigned value = count;
    };
};

// A variable is no kernel.
template <typename T, T *variable> struct Registration<Entry<T *, variable>> {
    Registration(const char *, const void *) {}
};
template <typename... Types, void (*function)(Types...)>
struct Registration<Entry<void (*)(Types...), function>> : KernelRegistration<Entry<void (*)(Types...), function>> {
    using KernelRegistration<Entry<void (*)(Types...), function>>::KernelRegistration;
};

} // namespace tcuda

#define TCUDA_JOIN_(a, b) a##b
#define TCUDA_JOIN(a, b) TCUDA_JOIN_(a, b)
// TCUDA_KERNEL("name", function) enters a kernel in the list. `function` may be a template with its arguments.
#define TCUDA_KERNEL(name, ...)                                                                                        \
    static TCUDA_OWN ::tcuda::Registration<::tcuda::Entry<decltype(&__VA_ARGS__), &__VA_ARGS__>> TCUDA_JOIN(                     \
        tcuda_registration_, __COUNTER__)(name, (const void *)(&__VA_ARGS__));

// TCUDA_EXPRESSION(symbol, expression) lists the variable of a name expression; the address is null for a kernel.
#define TCUDA_EXPRESSION(symbol, ...)                                                                                  \
    extern "C" __attribute__((visibility("default"))) const ::tcuda::Variable symbol;                                  \
    const ::tcuda::Variable symbol = ::tcuda::variable_of(&__VA_ARGS__);

inline void __syncthreads() { tcuda::services.wait_for_block(tcuda::services.grid, 0); }
inline int __syncthreads_count(int predicate) {
    return tcuda::services.wait_for_block(tcuda::services.grid, predicate).count;
}
inline int __syncthreads_and(int predicate) {
    return tcuda::services.wait_for_block(tcuda::services.grid, predicate).all;
}
inline int __syncthreads_or(int predicate) {
    return tcuda::services.wait_for_block(tcuda::services.grid, predicate).any;
}
inline void __syncwarp(unsigned mask = 0xffffffff) {
    unsigned present;
    tcuda::exchange(mask, 0, &present);
}

extern "C" {

#ifndef TCUDA_SUPPORT_ONLY
// The linker knows the bounds of the variables of the headers.
extern TCUDA_HIDDEN char __start_tcuda_own[], __stop_tcuda_own[];
__attribute__((visibility("default"))) extern const tcuda::abi::Module tcuda_module;
const tcuda::abi::Module tcuda_module = {
    tcuda::abi::version,
    reinterpret_cast<tcuda::abi::Index *>(&threadIdx),
    &tcuda::block_index,
    &tcuda::block_size,
    &tcuda::grid_size,
    &tcuda::cursor,
    &tcuda::services,
    tcuda::slots,
    tcuda::records,
#ifdef TCUDA_RACES
    &tcuda::race_notes,
#else
    nullptr,
#endif
    tcuda::heap_bytes,
    tcuda::shared_memory,
    &tcuda::own_bytes,
    &tcuda::written_bytes,
    __start_tcuda_own,
    __stop_tcuda_own,
    &tcuda::shared_size,
    &tcuda::printed,
    {reinterpret_cast<tcuda::abi::Address>(__start_tcuda_own), reinterpret_cast<tcuda::abi::Address>(__stop_tcuda_own)},
    &tcuda::kernels,
};
#endif

#ifndef TCUDA_SUPPORT_APART
// The beginning of the data that the compiler passes to a handler of -fsanitize=alignment, bounds,
// integer-divide-by-zero, shift-exponent and float-cast-overflow.
struct tcuda_check_data {
    const char *file;
    unsigned line, column;
    const struct {
        unsigned short kind, info;
        char name[1];
    } *type;
};
TCUDA_HIDDEN TCUDA_UNSANITIZED void __stack_chk_fail() {
    tcuda::fail("bounds", "a write beyond a local array has changed other memory of its function");
}
struct tcuda_alignment_data {
    tcuda_check_data check;
    unsigned char log_of_alignment, use; // The use is 0 for a read, 1 for a write, or another number.
};
TCUDA_HIDDEN TCUDA_UNSANITIZED void __ubsan_handle_type_mismatch_v1_abort(tcuda_alignment_data *data,
                                                                          tcuda::abi::Address address) {
    static char text[256];
    const char *use = data->use == 0 ? "read" : data->use == 1 ? "write" : "use";
    // The check of the size of an object has no alignment.
    if (data->log_of_alignment == 0) {
        __builtin_snprintf(text, sizeof text, "%s of %s outside of the array to which the pointer belongs", use,
                           data->check.type->name);
        tcuda::fail("bounds", text, data->check.file, int(data->check.line));
    }
    __builtin_snprintf(text, sizeof text, "Misaligned %s of %s at %#llx, which is no multiple of %u", use,
                       data->check.type->name, static_cast<unsigned long long>(address), 1u << data->log_of_alignment);
    tcuda::fail("misaligned", text, data->check.file, int(data->check.line));
}
TCUDA_HIDDEN TCUDA_UNSANITIZED void __ubsan_handle_out_of_bounds_abort(tcuda_check_data *data,
                                                                       tcuda::abi::Address index) {
    static char text[256];
    __builtin_snprintf(text, sizeof text, "index %lld is out of bounds for %s", static_cast<long long>(index),
                       data->type->name);
    tcuda::fail("bounds", text, data->file, int(data->line));
}
TCUDA_HIDDEN TCUDA_UNSANITIZED void __ubsan_handle_shift_out_of_bounds_abort(tcuda_check_data *data, tcuda::abi::Address,
                                                                             tcuda::abi::Address) {
    tcuda::fail("shift", "a shift by the width of the type or more, whose result here would not be that of a GPU",
                data->file, int(data->line));
}
TCUDA_HIDDEN TCUDA_UNSANITIZED void __ubsan_handle_float_cast_overflow_abort(tcuda_check_data *data,
                                                                             tcuda::abi::Address) {
    tcuda::fail("cast", "a cast to an integer that the type does not have, whose result here would not be that of a GPU",
                data->file, int(data->line));
}
TCUDA_HIDDEN TCUDA_UNSANITIZED void __ubsan_handle_divrem_overflow_abort(tcuda_check_data *data, tcuda::abi::Address,
                                                                         tcuda::abi::Address divisor) {
    tcuda::fail("divide", divisor == 0 ? "division of an integer by zero" : "the quotient of two integers overflows",
                data->file, int(data->line));
}
#endif

} // extern "C"
