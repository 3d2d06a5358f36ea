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

[[noreturn]] void fail(const std::string &path) { throw std::runtime_error(path + ": " + std::strerror(errno)); }

class File {
public:
    File(const std::string &path, int descriptor) : path_(path), descriptor_(descriptor) {
        if (descriptor_ < 0)
            fail(path_);
    }
    ~File() { close(descriptor_); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    int descriptor() const { return descriptor_; }
    const std::string &path() const { return path_; }

private:
    const std::string path_;
    const int descriptor_;
};

void copy(const File &source, const File &target) {
    char buffer[1 << 16];
    while (const ssize_t size = read(source.descriptor(), buffer, sizeof buffer)) {
        if (size < 0)
            fail(source.path());
        for (ssize_t done = 0; done < size;) {
            const ssize_t written = write(target.descriptor(), buffer + done, static_cast<std::size_t>(size - done));
            if (written < 0)
                fail(target.path());
            done += written;
        }
    }
}

// A file that is removed at the end of the scope.
struct Unlink {
    const std::string &path;
    ~Unlink() { unlink(path.c_str()); }
};

// The dynamic linker loads a file only once, but loads a copy of the file once more.
void *load_copy(const std::string &path) {
    const File original(path, open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string name = path + ".XXXXXX";
    const int descriptor = mkostemp(name.data(), O_CLOEXEC);
    const Unlink unlinked{name};
    {
        const File copied(name, descriptor);
        copy(original, copied);
    }
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(dlerror());
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
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    Dl_info info;
    ElfW(Sym) *symbol = nullptr;
    // dlsym() also finds the variables of the libraries that the module needs, such as libc.
    if (place < range_.begin || place >= range_.end ||
        dladdr1(address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) == 0 || symbol == nullptr ||
        info.dli_saddr != address || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT)
        return std::nullopt;
    return Memory{place, static_cast<std::size_t>(symbol->st_size)};
}

bool LoadedModule::acquire(std::chrono::milliseconds patience) {
    const std::thread::id self = std::this_thread::get_id();
    std::unique_lock<std::mutex> lock(mutex_);
    if (user_ == self)
        throw std::logic_error("the kernel is launched while this thread runs another kernel of the same module");
    if (!released_.wait_for(lock, patience, [this] { return !user_.has_value(); }))
        return false;
    user_ = self;
    return true;
}

void LoadedModule::release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    user_.reset();
    released_.notify_one();
}

} // namespace tcuda
