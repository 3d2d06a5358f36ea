#include "emulation/_cpp/memory/shared_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "threads/published.hpp"

namespace tcuda {
namespace {

constexpr off_t file_size = off_t(1) << 60;
constexpr unsigned close_on_exec = 1; // MFD_CLOEXEC, which old C libraries do not define

std::atomic<unsigned> forks_of_process{0};

// When the library is loaded, so that no fork is missed.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks_of_process; });

// Opened files by identity: a process must lock a file through one description only, because its own locks do not stop
// it.
struct OpenedFiles {
    std::mutex mutex; // guards `files`; only the system is called under the mutex
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<SharedFile>> files;
};

// The files outlive all objects that are destroyed at the end of the process.
OpenedFiles &opened() {
    static Published<OpenedFiles> files;
    return files.get();
}

int reopened(int descriptor) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return ::open(path, O_RDWR | O_CLOEXEC);
}

bool lock(int descriptor, short type, std::size_t offset, std::size_t size) {
    struct flock range{};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(offset);
    range.l_len = static_cast<off_t>(size);
    return fcntl(descriptor, F_OFD_SETLK, &range) == 0;
}

} // namespace

unsigned forks() { return forks_of_process.load(std::memory_order_relaxed); }

SharedFile::SharedFile(int descriptor, Identity identity)
    : descriptor_(descriptor), identity_(identity), forks_(forks()) {}

SharedFile::~SharedFile() {
    close(descriptor_);
    if (!is_usable())
        return;
    const std::lock_guard lock(opened().mutex);
    const auto found = opened().files.find(identity_);
    if (found != opened().files.end() && found->second.expired())
        opened().files.erase(found);
}

bool SharedFile::is_usable() const { return forks_ == forks(); }

std::shared_ptr<SharedFile> SharedFile::create() {
    struct rlimit largest{};
    // A process that makes a file larger than its limit gets a signal.
    if (getrlimit(RLIMIT_FSIZE, &largest) != 0 || largest.rlim_cur < static_cast<rlim_t>(file_size))
        return nullptr;
    const int descriptor = static_cast<int>(syscall(SYS_memfd_create, "tcuda emulated device", close_on_exec));
    if (descriptor < 0)
        return nullptr;
    const std::shared_ptr<SharedFile> made = ftruncate(descriptor, file_size) == 0 ? open(descriptor) : nullptr;
    close(descriptor);
    return made;
}

std::shared_ptr<SharedFile> SharedFile::open(int descriptor) {
    struct stat facts{};
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size != file_size)
        return nullptr;
    const Identity identity{facts.st_dev, facts.st_ino};
    std::shared_ptr<SharedFile> file; // is destroyed after the mutex is given back, because the destructor takes it
    const std::lock_guard lock(opened().mutex);
    std::weak_ptr<SharedFile> &entry = opened().files[identity];
    file = entry.lock();
    if (file != nullptr && file->is_usable())
        return file;
    const int own = reopened(descriptor);
    if (own < 0)
        return nullptr;
    try {
        file.reset(new SharedFile(own, identity));
    } catch (...) {
        close(own);
        throw;
    }
    entry = file;
    return file;
}

std::uintptr_t SharedFile::map(std::uintptr_t address, std::size_t offset, std::size_t size) const {
    const int flags = MAP_SHARED | MAP_NORESERVE | (address != 0 ? MAP_FIXED : 0);
    void *const memory = mmap(reinterpret_cast<void *>(address), size, PROT_READ | PROT_WRITE, flags, descriptor_,
                              static_cast<off_t>(offset));
    return memory == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(memory);
}

void SharedFile::discard(std::size_t offset, std::size_t size) const {
    if (is_usable())
        fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size));
}

bool SharedFile::hold(std::size_t offset, std::size_t size) {
    if (!is_usable())
        return false;
    const std::lock_guard guard(mutex_);
    std::size_t &holds = holds_[offset];
    if (holds == 0 && !lock(descriptor_, F_RDLCK, offset, size)) {
        holds_.erase(offset);
        return false;
    }
    ++holds;
    return true;
}

bool SharedFile::let_go(std::size_t offset, std::size_t size) {
    if (!is_usable())
        return false;
    const std::lock_guard guard(mutex_);
    const auto held = holds_.find(offset);
    if (held == holds_.end() || --held->second != 0)
        return false;
    holds_.erase(held);
    // Two processes that let go at the same time both give up their locks first. So one of them finds no lock.
    lock(descriptor_, F_UNLCK, offset, size);
    return discard_if_free(offset, size);
}

bool SharedFile::discard_unless_held(std::size_t offset, std::size_t size) {
    if (!is_usable())
        return false;
    const std::lock_guard guard(mutex_);
    return holds_.find(offset) == holds_.end() && discard_if_free(offset, size);
}

bool SharedFile::discard_if_free(std::size_t offset, std::size_t size) const {
    if (!lock(descriptor_, F_WRLCK, offset, size))
        return false;
    discard(offset, size);
    lock(descriptor_, F_UNLCK, offset, size);
    return true;
}

int SharedFile::share(std::size_t offset, std::size_t size) const {
    const int shared = is_usable() ? reopened(descriptor_) : -1;
    if (shared < 0)
        return -1;
    if (lseek(shared, static_cast<off_t>(offset), SEEK_SET) < 0 || !lock(shared, F_RDLCK, offset, size)) {
        close(shared);
        return -1;
    }
    return shared;
}

bool SharedFile::read(std::size_t offset, void *bytes, std::size_t size) const {
    return pread(descriptor_, bytes, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool SharedFile::write(std::size_t offset, const void *bytes, std::size_t size) const {
    return pwrite(descriptor_, bytes, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

} // namespace tcuda
