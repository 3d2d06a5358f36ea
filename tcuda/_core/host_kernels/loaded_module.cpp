#include "host_kernels/loaded_module.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace tcuda {
namespace {

class File {
public:
    explicit File(int descriptor) : descriptor_(descriptor) {
        if (descriptor_ < 0)
            throw std::runtime_error(std::strerror(errno));
    }
    ~File() { close(descriptor_); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    int descriptor() const { return descriptor_; }

private:
    const int descriptor_;
};

void copy(const File &source, const File &target) {
    char buffer[1 << 16];
    for (;;) {
        const ssize_t size = read(source.descriptor(), buffer, sizeof buffer);
        if (size == 0)
            return;
        if (size < 0 || write(target.descriptor(), buffer, static_cast<std::size_t>(size)) != size)
            throw std::runtime_error(std::strerror(errno));
    }
}

// The dynamic linker loads a file only once, but loads a copy of the file once more.
void *load_copy(const std::string &path) {
    std::string name = path + ".XXXXXX";
    const File original(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    {
        const File copied(mkostemp(name.data(), O_CLOEXEC));
        copy(original, copied);
    }
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char *failure = library == nullptr ? dlerror() : nullptr;
    unlink(name.c_str());
    if (failure != nullptr)
        throw std::runtime_error(failure);
    return library;
}

struct Search {
    std::uintptr_t inside;
    abi::Range found;
};

int visit(dl_phdr_info *info, std::size_t, void *data) {
    auto &search = *static_cast<Search *>(data);
    abi::Range range{~std::uintptr_t(0), 0};
    for (int place = 0; place < info->dlpi_phnum; ++place) {
        const auto &segment = info->dlpi_phdr[place];
        if (segment.p_type != PT_LOAD)
            continue;
        const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        range.begin = begin < range.begin ? begin : range.begin;
        range.end = begin + segment.p_memsz > range.end ? begin + segment.p_memsz : range.end;
    }
    if (search.inside < range.begin || search.inside >= range.end)
        return 0;
    search.found = range;
    return 1;
}

} // namespace

LoadedModule::LoadedModule(const std::string &path) : library_(load_copy(path)) {
    interface_ = static_cast<const abi::Module *>(dlsym(library_, "tcuda_module"));
    if (interface_ == nullptr || interface_->version != abi::version) {
        dlclose(library_);
        throw std::runtime_error(path + " was not made by this version of tcuda");
    }
    Search search{reinterpret_cast<std::uintptr_t>(interface_), {}};
    dl_iterate_phdr(visit, &search);
    range_ = search.found;
}

LoadedModule::~LoadedModule() { dlclose(library_); }

const abi::Kernel *LoadedModule::kernel(const std::string &name) const {
    const void *symbol = dlsym(library_, name.c_str());
    for (const abi::Kernel *kernel = *interface_->kernels; kernel != nullptr; kernel = kernel->next)
        if (name == kernel->name || (symbol != nullptr && symbol == kernel->function))
            return kernel;
    return nullptr;
}

std::vector<std::string> LoadedModule::kernel_names() const {
    std::vector<std::string> names;
    for (const abi::Kernel *kernel = *interface_->kernels; kernel != nullptr; kernel = kernel->next)
        names.insert(names.begin(), kernel->name);
    return names;
}

std::optional<LoadedModule::Memory> LoadedModule::variable(const std::string &name) const {
    void *address = dlsym(library_, name.c_str());
    Dl_info info;
    ElfW(Sym) *symbol = nullptr;
    if (address == nullptr ||
        dladdr1(address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) == 0 || symbol == nullptr ||
        info.dli_saddr != address || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT)
        return std::nullopt;
    return Memory{reinterpret_cast<std::uintptr_t>(address), static_cast<std::size_t>(symbol->st_size)};
}

bool LoadedModule::acquire() {
    const std::thread::id self = std::this_thread::get_id();
    std::unique_lock<std::mutex> lock(mutex_);
    if (user_ == self)
        return false;
    released_.wait(lock, [this] { return !user_.has_value(); });
    user_ = self;
    return true;
}

void LoadedModule::release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    user_.reset();
    released_.notify_one();
}

} // namespace tcuda
