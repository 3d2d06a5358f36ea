// The functions that a loaded module imports from other modules, and the words of its memory that hold their addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tcuda::library_calls {

// A word of the global offset table of a module.
struct ImportEntry {
    std::string name;
    std::atomic<std::uintptr_t> *word;
    // The function that the module calls; null if no module defines the function. If the module binds lazily, the
    // loader may not have written the function into the word yet.
    std::uintptr_t function;
};

// A module that the loader has mapped. The module stays loaded as long as this object lives.
class LoadedModule {
public:
    // The paths of all modules; empty on platforms where import tables cannot be read.
    static std::vector<std::string> paths();
    // How many modules the loader has loaded so far.
    static unsigned long long loads();

    explicit LoadedModule(const std::string &path); // of paths()
    LoadedModule(LoadedModule &&other) noexcept;
    LoadedModule &operator=(LoadedModule &&) = delete;
    ~LoadedModule();

    // Whether the module is still loaded under the path, and can be read.
    explicit operator bool() const { return dynamic_ != nullptr; }
    const std::string &path() const { return path_; }

    // The entries of the functions for which `wanted(name)` is true.
    template <class Wanted> std::vector<ImportEntry> imports(const Wanted &wanted) const {
        std::vector<ImportEntry> found;
        for (const Relocation &relocation : relocations())
            if (wanted(relocation.name))
                add(found, relocation);
        return found;
    }

    // Lets the entries be written during the lifetime: the loader may have made their pages read-only.
    class Unsealed {
    public:
        explicit Unsealed(const LoadedModule &module);
        ~Unsealed();
        Unsealed(const Unsealed &) = delete;
        Unsealed &operator=(const Unsealed &) = delete;
        explicit operator bool() const { return writable_; } // false if the system has refused

    private:
        const LoadedModule &module_;
        bool writable_;
    };

private:
    struct Relocation {
        const char *name;
        std::uintptr_t word;
        std::uint32_t symbol;
    };
    std::vector<Relocation> relocations() const;
    void add(std::vector<ImportEntry> &found, const Relocation &relocation) const;
    std::uintptr_t function_of(const Relocation &relocation, std::uintptr_t present) const;
    const char *version_of(std::uint32_t symbol) const;
    void find_segments();

    std::string path_;
    void *handle_ = nullptr;
    std::uintptr_t base_ = 0;
    const void *dynamic_ = nullptr;
    std::uintptr_t begin_ = 0, end_ = 0; // of the mapped segments
    std::uintptr_t sealed_begin_ = 0, sealed_end_ = 0; // of the pages that the loader has made read-only
};

} // namespace tcuda::library_calls
