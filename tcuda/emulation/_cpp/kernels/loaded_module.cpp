#include "emulation/_cpp/kernels/loaded_module.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tcuda {
namespace {

constexpr unsigned close_on_exec = 1; // MFD_CLOEXEC, which old C libraries do not define

[[noreturn]] void fail() { throw std::runtime_error(std::string("a library of kernels: ") + std::strerror(errno)); }

// A file in memory, which needs neither a disk with free space nor a folder from which libraries can be executed.
class File {
public:
    explicit File(std::string_view content)
        : descriptor_(static_cast<int>(syscall(SYS_memfd_create, "tcuda kernels", close_on_exec))) {
        if (descriptor_ < 0)
            fail();
        while (!content.empty()) {
            const ssize_t written = write(descriptor_, content.data(), content.size());
            if (written < 0 && errno != EINTR) {
                const int error = errno;
                close(descriptor_);
                errno = error;
                fail();
            }
            content.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
        }
    }
    ~File() { close(descriptor_); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    // The dynamic linker takes a name that it knows for the same library, and a later file may have the same
    // descriptor. So each call returns another spelling of the path.
    std::string new_path() const {
        static std::atomic<std::uint64_t> count{0};
        std::string spelling = "/proc/self/";
        for (std::uint64_t rest = ++count; rest != 0; rest /= 2)
            spelling += rest % 2 == 0 ? "/" : "./";
        return spelling + "fd/" + std::to_string(descriptor_);
    }

private:
    const int descriptor_;
};

struct Search {
    std::uintptr_t inside;
    abi::Range found;
    std::vector<LoadedModule::Segment> segments;
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
    for (int place = 0; place < info->dlpi_phnum; ++place) {
        const auto &segment = info->dlpi_phdr[place];
        const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_R) != 0)
            search.segments.push_back({{begin, begin + segment.p_memsz}, (segment.p_flags & PF_X) != 0});
    }
    return 1;
}

} // namespace

LoadedModule::LoadedModule(std::string_view content) {
    const File file(content);
    library_ = dlopen(file.new_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr)
        throw std::runtime_error(dlerror());
    interface_ = static_cast<const abi::Module *>(dlsym(library_, "tcuda_module"));
    if (interface_ == nullptr || interface_->version != abi::version) {
        dlclose(library_);
        throw std::runtime_error("the library of kernels was not made by this version of tcuda");
    }
    Search search{reinterpret_cast<std::uintptr_t>(interface_), {}, {}};
    dl_iterate_phdr(visit, &search);
    range_ = search.found;
    segments_ = std::move(search.segments);
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
