#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace tcuda {

// A part of the program, with the parts around it. A scope lives until the end of the process, so that blocks and
// events may point to it.
struct Scope {
    const Scope *outer; // null for an outermost scope; no outer scope has the same name
    std::size_t name;   // the number of the name, which all scopes of that name have
    std::string path;   // the names from the outermost on, with dots between them
};

// The innermost scope of the caller. The bindings connect the function that knows the scope, once the program has
// opened the first one.
class CallerScope {
public:
    using Find = const Scope *();

    static void connect(Find *find) { find_.store(find, std::memory_order_relaxed); }

    // Null outside of all scopes. Called without the lock of a ledger, because the function asks Python.
    static const Scope *current() {
        Find *const find = find_.load(std::memory_order_relaxed);
        return find == nullptr ? nullptr : find();
    }

private:
    static inline std::atomic<Find *> find_{nullptr};
};

} // namespace tcuda
