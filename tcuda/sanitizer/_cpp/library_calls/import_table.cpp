#include "sanitizer/_cpp/library_calls/import_table.hpp"

#include <utility>

#if defined(__linux__) && defined(__GLIBC__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__))
#define TCUDA_READS_IMPORTS 1
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tcuda::library_calls {

#ifdef TCUDA_READS_IMPORTS

namespace {

#ifdef __x86_64__
constexpr std::uint32_t function_relocation = R_X86_64_JUMP_SLOT, address_relocation = R_X86_64_GLOB_DAT;
#else
constexpr std::uint32_t function_relocation = R_AARCH64_JUMP_SLOT, address_relocation = R_AARCH64_GLOB_DAT;
#endif

// The parts of the dynamic section that this file reads. The loader adds the base of the module to some of the
// addresses, in place.
struct Dynamic {
    const ElfW(Sym) *symbols = nullptr;
    const char *strings = nullptr;
    const ElfW(Rela) *tables[2] = {nullptr, nullptr};
    std::size_t sizes[2] = {0, 0};
    const ElfW(Half) *versions = nullptr;
    const ElfW(Verneed) *needed = nullptr;
    std::size_t needed_count = 0;

    Dynamic(const void *section, std::uintptr_t base) {
        const auto address = [base](const ElfW(Dyn) *entry) {
            return entry->d_un.d_ptr < base ? entry->d_un.d_ptr + base : entry->d_un.d_ptr;
        };
        for (auto *entry = static_cast<const ElfW(Dyn) *>(section); entry->d_tag != DT_NULL; ++entry)
            switch (entry->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym) *>(address(entry));
                break;
            case DT_STRTAB:
                strings = reinterpret_cast<const char *>(address(entry));
                break;
            case DT_JMPREL:
                tables[0] = reinterpret_cast<const ElfW(Rela) *>(address(entry));
                break;
            case DT_PLTRELSZ:
                sizes[0] = entry->d_un.d_val;
                break;
            case DT_RELA:
                tables[1] = reinterpret_cast<const ElfW(Rela) *>(address(entry));
                break;
            case DT_RELASZ:
                sizes[1] = entry->d_un.d_val;
                break;
            case DT_VERSYM:
                versions = reinterpret_cast<const ElfW(Half) *>(address(entry));
                break;
            case DT_VERNEED:
                needed = reinterpret_cast<const ElfW(Verneed) *>(address(entry));
                break;
            case DT_VERNEEDNUM:
                needed_count = entry->d_un.d_val;
                break;
            }
    }
};

} // namespace

std::vector<std::string> LoadedModule::paths() {
    std::vector<std::string> found;
    const auto add = [](dl_phdr_info *info, std::size_t, void *list) {
        if (info->dlpi_name && *info->dlpi_name)
            static_cast<std::vector<std::string> *>(list)->push_back(info->dlpi_name);
        return 0;
    };
    dl_iterate_phdr(add, &found);
    return found;
}

unsigned long long LoadedModule::loads() {
    unsigned long long count = 0;
    const auto read = [](dl_phdr_info *info, std::size_t, void *result) {
        *static_cast<unsigned long long *>(result) = info->dlpi_adds;
        return 1;
    };
    dl_iterate_phdr(read, &count);
    return count;
}

LoadedModule::LoadedModule(const std::string &path)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
    link_map *map = nullptr;
    if (!handle_ || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map)
        return;
    base_ = map->l_addr;
    find_segments();
    if (begin_ != end_)
        dynamic_ = map->l_ld;
}

LoadedModule::LoadedModule(LoadedModule &&other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, nullptr)), base_(other.base_),
      dynamic_(std::exchange(other.dynamic_, nullptr)), begin_(other.begin_), end_(other.end_),
      sealed_begin_(other.sealed_begin_), sealed_end_(other.sealed_end_) {}

LoadedModule::~LoadedModule() {
    if (handle_)
        dlclose(handle_);
}

void LoadedModule::find_segments() {
    const auto read = [](dl_phdr_info *info, std::size_t, void *result) {
        auto &module = *static_cast<LoadedModule *>(result);
        if (info->dlpi_addr != module.base_ || module.path_ != info->dlpi_name)
            return 0;
        const std::uintptr_t page = std::uintptr_t(sysconf(_SC_PAGESIZE));
        for (int index = 0; index < info->dlpi_phnum; ++index) {
            const ElfW(Phdr) &segment = info->dlpi_phdr[index];
            const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr, end = begin + segment.p_memsz;
            if (segment.p_type == PT_LOAD) {
                if (module.begin_ == module.end_ || begin < module.begin_)
                    module.begin_ = begin;
                if (end > module.end_)
                    module.end_ = end;
            } else if (segment.p_type == PT_GNU_RELRO) {
                module.sealed_begin_ = begin & ~(page - 1);
                module.sealed_end_ = end & ~(page - 1);
            }
        }
        return 1;
    };
    dl_iterate_phdr(read, this);
}

std::vector<LoadedModule::Relocation> LoadedModule::relocations() const {
    std::vector<Relocation> found;
    const Dynamic dynamic(dynamic_, base_);
    if (!dynamic.symbols || !dynamic.strings)
        return found;
    for (int table = 0; table < 2; ++table) {
        if (!dynamic.tables[table])
            continue;
        for (std::size_t index = 0; index < dynamic.sizes[table] / sizeof(ElfW(Rela)); ++index) {
            const ElfW(Rela) &entry = dynamic.tables[table][index];
            const std::uint32_t type = std::uint32_t(ELF64_R_TYPE(entry.r_info));
            if (type != function_relocation && type != address_relocation)
                continue;
            const std::uint32_t symbol = std::uint32_t(ELF64_R_SYM(entry.r_info));
            found.push_back({dynamic.strings + dynamic.symbols[symbol].st_name, base_ + entry.r_offset, symbol});
        }
    }
    return found;
}

const char *LoadedModule::version_of(std::uint32_t symbol) const {
    const Dynamic dynamic(dynamic_, base_);
    if (!dynamic.versions || !dynamic.needed)
        return nullptr;
    const unsigned version = dynamic.versions[symbol] & 0x7fff;
    auto *library = reinterpret_cast<const char *>(dynamic.needed);
    for (std::size_t count = 0; count < dynamic.needed_count; ++count) {
        const auto &file = *reinterpret_cast<const ElfW(Verneed) *>(library);
        const char *at = library + file.vn_aux;
        for (unsigned index = 0; index < file.vn_cnt; ++index) {
            const auto &needed = *reinterpret_cast<const ElfW(Vernaux) *>(at);
            if (needed.vna_other == version)
                return dynamic.strings + needed.vna_name;
            at += needed.vna_next;
        }
        library += file.vn_next;
    }
    return nullptr;
}

std::uintptr_t LoadedModule::function_of(const Relocation &relocation, std::uintptr_t present) const {
    // An address outside of the module is the function of another module.
    if (present != 0 && (present < begin_ || present >= end_))
        return present;
    const Dynamic dynamic(dynamic_, base_);
    const ElfW(Sym) &symbol = dynamic.symbols[relocation.symbol];
    if (symbol.st_shndx != SHN_UNDEF && present == base_ + symbol.st_value)
        return present;
    // The entry leads into the loader, which looks for the function in the same order at the first call.
    void *function = nullptr;
    const char *version = version_of(relocation.symbol);
    for (void *scope : {RTLD_DEFAULT, handle_})
        if (!function)
            function = version ? dlvsym(scope, relocation.name, version) : dlsym(scope, relocation.name);
    return reinterpret_cast<std::uintptr_t>(function);
}

void LoadedModule::add(std::vector<ImportEntry> &found, const Relocation &relocation) const {
    auto *word = reinterpret_cast<std::atomic<std::uintptr_t> *>(relocation.word);
    found.push_back({relocation.name, word, function_of(relocation, word->load(std::memory_order_relaxed))});
}

LoadedModule::Unsealed::Unsealed(const LoadedModule &module) : module_(module), writable_(true) {
    if (module.sealed_begin_ < module.sealed_end_)
        writable_ = mprotect(reinterpret_cast<void *>(module.sealed_begin_), module.sealed_end_ - module.sealed_begin_,
                             PROT_READ | PROT_WRITE) == 0;
}

LoadedModule::Unsealed::~Unsealed() {
    if (writable_ && module_.sealed_begin_ < module_.sealed_end_)
        mprotect(reinterpret_cast<void *>(module_.sealed_begin_), module_.sealed_end_ - module_.sealed_begin_,
                 PROT_READ);
}

#else

std::vector<std::string> LoadedModule::paths() { return {}; }
unsigned long long LoadedModule::loads() { return 0; }
LoadedModule::LoadedModule(const std::string &path) : path_(path) {}
LoadedModule::LoadedModule(LoadedModule &&other) noexcept : path_(std::move(other.path_)) {}
LoadedModule::~LoadedModule() = default;
std::vector<LoadedModule::Relocation> LoadedModule::relocations() const { return {}; }
void LoadedModule::add(std::vector<ImportEntry> &, const Relocation &) const {}
LoadedModule::Unsealed::Unsealed(const LoadedModule &module) : module_(module), writable_(false) {}
LoadedModule::Unsealed::~Unsealed() = default;

#endif

static_assert(sizeof(std::atomic<std::uintptr_t>) == sizeof(std::uintptr_t));

} // namespace tcuda::library_calls
