#include "sanitizer/_cpp/system_calls/system_calls.hpp"

#include <csignal>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sanitizer/_cpp/host_accesses/page_watch.hpp"
#include "sanitizer/_cpp/library_calls/import_table.hpp"
#include "threads/published.hpp"

namespace tcuda::system_calls {
namespace {

using library_calls::ImportEntry;
using library_calls::LoadedModule;

using Arguments = std::array<std::uint64_t, 6>; // no function has more, and all are integers and pointers

// Where a function finds the memory.
enum class Form {
    bytes,   // the argument `first` is the memory, and the next one is its size
    items,   // the argument `first` is the memory; the next two are the size of an item and the number of the items
    vectors, // the argument `first` is an array of iovec, and the next one is its length
    message, // the argument `first` is a msghdr
    handler  // there is none: the function installs the handler of a signal
};

struct Function {
    std::string_view name;
    Form form;
    bool fills; // whether the system writes the memory
    std::size_t first = 1;
};

// The names with two underscores are those of code that was compiled with checks of sizes.
constexpr Function functions[] = {
    {"read", Form::bytes, true},
    {"__read_chk", Form::bytes, true},
    {"write", Form::bytes, false},
    {"pread", Form::bytes, true},
    {"pread64", Form::bytes, true},
    {"__pread_chk", Form::bytes, true},
    {"__pread64_chk", Form::bytes, true},
    {"pwrite", Form::bytes, false},
    {"pwrite64", Form::bytes, false},
    {"recv", Form::bytes, true},
    {"__recv_chk", Form::bytes, true},
    {"recvfrom", Form::bytes, true},
    {"__recvfrom_chk", Form::bytes, true},
    {"send", Form::bytes, false},
    {"sendto", Form::bytes, false},
    {"readv", Form::vectors, true},
    {"preadv", Form::vectors, true},
    {"preadv64", Form::vectors, true},
    {"preadv2", Form::vectors, true},
    {"preadv64v2", Form::vectors, true},
    {"writev", Form::vectors, false},
    {"pwritev", Form::vectors, false},
    {"pwritev64", Form::vectors, false},
    {"pwritev2", Form::vectors, false},
    {"pwritev64v2", Form::vectors, false},
    {"recvmsg", Form::message, true},
    {"sendmsg", Form::message, false},
    {"fread", Form::items, true, 0},
    {"fread_unlocked", Form::items, true, 0},
    {"fwrite", Form::items, false, 0},
    {"fwrite_unlocked", Form::items, false, 0},
    {"sigaction", Form::handler, false},
    {"signal", Form::handler, false},
};
constexpr std::size_t function_count = std::size(functions);

std::array<std::atomic<std::uintptr_t>, function_count> real_functions{};

// The watched memory that a call meets. The accesses beyond the first ones are not told.
class Touches {
public:
    Touches(const Function &function, const Arguments &arguments) : function_(function), arguments_(arguments) {}

    // Opens the pages. False if no page of the memory is watched.
    bool open() noexcept {
        bool any = false;
        std::uint64_t before = 0; // bytes of the call in earlier parts of its memory
        each_part([&](std::uint64_t address, std::uint64_t size) {
            for (;;) {
                const PageWatch::Touch touch = PageWatch::touch(address, address + size, function_.fills);
                if (touch.seen == nullptr)
                    break;
                any = true;
                if (count_ < touches_.size())
                    touches_[count_++] = {touch, before + (touch.address - address)};
            }
            before += size;
        });
        return any;
    }

    // Tells the accesses to the first `bytes` bytes of the call.
    void tell(std::uint64_t bytes) {
        const std::size_t count = std::exchange(count_, 0);
        for (std::size_t place = 0; place < count; ++place)
            if (touches_[place].offset < bytes)
                touches_[place].touch.seen(touches_[place].touch.address, function_.fills);
    }

    // How many bytes the system has read or written, by the result of the call.
    std::uint64_t bytes(std::uint64_t result) const noexcept {
        if (function_.form == Form::items)
            return result * arguments_[function_.first + 1];
        return static_cast<std::int64_t>(result) < 0 ? 0 : result;
    }

private:
    struct Told {
        PageWatch::Touch touch;
        std::uint64_t offset; // of the address in the memory of the call
    };

    template <class Visit> void each_part(const Visit &visit) const {
        const std::uint64_t *const given = &arguments_[function_.first];
        switch (function_.form) {
        case Form::bytes:
            return visit(given[0], given[1]);
        case Form::items:
            return visit(given[0], given[1] * given[2]);
        case Form::vectors:
            return each_vector(reinterpret_cast<const iovec *>(given[0]), static_cast<std::uint32_t>(given[1]), visit);
        case Form::message: {
            const auto *const message = reinterpret_cast<const msghdr *>(given[0]);
            return each_vector(message->msg_iov, message->msg_iovlen, visit);
        }
        case Form::handler:
            return;
        }
    }
    template <class Visit>
    static void each_vector(const iovec *vectors, std::size_t count, const Visit &visit) {
        constexpr std::size_t most_vectors = 1024; // the system refuses more
        for (std::size_t place = 0; count <= most_vectors && place < count; ++place)
            visit(reinterpret_cast<std::uint64_t>(vectors[place].iov_base), vectors[place].iov_len);
    }

    const Function &function_;
    const Arguments &arguments_;
    std::array<Told, 8> touches_{};
    std::size_t count_ = 0;
};

std::uint64_t real(std::size_t function, const Arguments &given) {
    using Real =
        std::uint64_t (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
    const auto called = reinterpret_cast<Real>(real_functions[function].load(std::memory_order_acquire));
    return called(given[0], given[1], given[2], given[3], given[4], given[5]);
}

bool is_bad_address(std::uint64_t result, int error) {
    return static_cast<std::int64_t>(result) == -1 && error == EFAULT;
}

// The child of vfork() may call this function, and so may the handler of a signal.
[[gnu::noinline]] std::uint64_t pass_on(std::size_t number, const Arguments &arguments) {
    const Function &function = functions[number];
    if (function.form == Form::handler) {
        const std::uint64_t result = real(number, arguments);
        const int error = errno;
        if (static_cast<int>(arguments[0]) == SIGSEGV)
            PageWatch::keep_handler();
        errno = error;
        return result;
    }
    Touches touches(function, arguments);
    touches.open();
    for (;;) {
        // What the system reads is told before, because the call is sure to read the memory. How much the call writes
        // is known after the call.
        if (!function.fills)
            touches.tell(~std::uint64_t(0));
        const std::uint64_t result = real(number, arguments);
        const int error = errno;
        // An operation may have begun to use the memory since the pages were opened.
        if (is_bad_address(result, error) && touches.open())
            continue;
        if (function.fills)
            touches.tell(touches.bytes(result));
        errno = error;
        return result;
    }
}

template <std::size_t number>
std::uint64_t thunk(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d, std::uint64_t e,
                    std::uint64_t f) {
    const Arguments arguments{a, b, c, d, e, f};
    if (PageWatch::watches())
        return pass_on(number, arguments);
    const std::uint64_t result = real(number, arguments);
    return is_bad_address(result, errno) && PageWatch::watches() ? pass_on(number, arguments) : result;
}

template <std::size_t... number>
std::array<std::uintptr_t, function_count> thunks_of(std::index_sequence<number...>) {
    return {reinterpret_cast<std::uintptr_t>(&thunk<number>)...};
}

const std::array<std::uintptr_t, function_count> thunks = thunks_of(std::make_index_sequence<function_count>());

std::size_t find_function(std::string_view name) {
    return std::find_if(std::begin(functions), std::end(functions),
                        [name](const Function &function) { return function.name == name; }) -
           std::begin(functions);
}

struct State {
    std::mutex mutex;
    unsigned long long loads = 0; // at the last look
    std::unordered_set<std::string> seen;
};

State &state() {
    static Published<State> state;
    return state.get();
}

// This module calls the real functions.
bool is_this_module(const std::string &path) {
    Dl_info own;
    return dladdr(reinterpret_cast<void *>(&notice), &own) == 0 || path == own.dli_fname;
}

void notice_in(const std::string &path) {
    const LoadedModule module(path);
    if (!module)
        return;
    std::vector<std::pair<ImportEntry, std::uintptr_t>> replaced;
    for (ImportEntry &entry : module.imports([](const char *name) { return find_function(name) < function_count; })) {
        const std::size_t function = find_function(entry.name);
        std::uintptr_t none = 0;
        if (entry.function == 0 || entry.word->load(std::memory_order_relaxed) == thunks[function])
            continue;
        // Another library may put functions of its own above those of the C library. A process has one such library.
        if (real_functions[function].compare_exchange_strong(none, entry.function) || none == entry.function)
            replaced.emplace_back(std::move(entry), thunks[function]);
    }
    if (replaced.empty())
        return;
    const LoadedModule::Unsealed unsealed(module);
    if (unsealed)
        for (auto &[entry, ours] : replaced)
            entry.word->store(ours, std::memory_order_release);
}

} // namespace

void notice() {
    if (!PageWatch::supported())
        return;
    PageWatch::watches(); // makes the state of the watch, which a thunk must not do in the handler of a signal
    State &mine = state();
    const std::lock_guard<std::mutex> lock(mine.mutex);
    const unsigned long long loads = LoadedModule::loads();
    if (loads == std::exchange(mine.loads, loads))
        return;
    std::vector<std::string> paths = LoadedModule::paths();
    paths.emplace_back(); // the program itself
    for (const std::string &path : paths)
        if (mine.seen.insert(path).second && !is_this_module(path))
            notice_in(path);
}

} // namespace tcuda::system_calls
