#include "kernel_uses/disassembler.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "threads/published.hpp"

namespace tcuda::kernel_uses {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_cubin_bytes = std::size_t(32) << 20, most_listing_bytes = std::size_t(64) << 20;
constexpr std::size_t most_symbols = 512;
constexpr int lowest_descriptor = 10; // above those that the child gets
constexpr int child_cubin = 3;

class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor &&other) noexcept : number_(other.number_) { other.number_ = -1; }
    Descriptor &operator=(Descriptor &&other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { close(); }

    int number() const { return number_; }
    bool open() const { return number_ >= 0; }
    void close() {
        if (number_ >= 0)
            ::close(number_);
        number_ = -1;
    }
    // A program may have closed its standard streams: the numbers of the child must not be in use.
    bool raise() {
        if (number_ >= lowest_descriptor)
            return true;
        const int raised = fcntl(number_, F_DUPFD_CLOEXEC, lowest_descriptor);
        close();
        number_ = raised;
        return raised >= 0;
    }

private:
    int number_;
};

// Never freed: other threads may use an older preference.
std::atomic<const Disassembler *> preferred{nullptr};

bool is_program(const std::string &path) {
    struct stat status;
    return !path.empty() && stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
}

std::string found_program() {
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"})
        if (const char *folder = std::getenv(variable); folder != nullptr && *folder != 0)
            if (const std::string path = std::string(folder) + "/bin/nvdisasm"; is_program(path))
                return path;
    if (const char *folders = std::getenv("PATH")) {
        std::string_view rest = folders;
        while (!rest.empty()) {
            const std::size_t end = rest.find(':');
            const std::string folder(rest.substr(0, end));
            rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
            // A relative folder would make the result depend on the current folder.
            if (!folder.empty() && folder[0] == '/' && is_program(folder + "/nvdisasm"))
                return folder + "/nvdisasm";
        }
    }
    const std::string usual = "/usr/local/cuda/bin/nvdisasm";
    return is_program(usual) ? usual : std::string();
}

// A file without a name, which goes with its last descriptor, also if the process is killed.
Descriptor file_of(const std::byte *data, std::size_t size) {
    Descriptor file(memfd_create("cubin", MFD_CLOEXEC));
    if (!file.open() || !file.raise())
        return Descriptor();
    while (size > 0) {
        const ssize_t written = write(file.number(), data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return Descriptor();
        data += written;
        size -= std::size_t(written);
    }
    return file;
}

class SpawnActions {
public:
    SpawnActions() { sound_ = posix_spawn_file_actions_init(&actions_) == 0; }
    ~SpawnActions() {
        if (sound_)
            posix_spawn_file_actions_destroy(&actions_);
    }
    SpawnActions(const SpawnActions &) = delete;

    bool open_null(int number, int flags) {
        return sound_ && posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", flags, 0) == 0;
    }
    bool give(const Descriptor &descriptor, int number) {
        return sound_ && posix_spawn_file_actions_adddup2(&actions_, descriptor.number(), number) == 0;
    }
    const posix_spawn_file_actions_t *get() const { return &actions_; }

private:
    posix_spawn_file_actions_t actions_;
    bool sound_;
};

// The child blocks and ignores no signals, and does not get those that the terminal sends to the program.
class SpawnAttributes {
public:
    SpawnAttributes() {
        sound_ = posix_spawnattr_init(&attributes_) == 0;
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        good_ = sound_ && posix_spawnattr_setsigmask(&attributes_, &none) == 0 &&
                posix_spawnattr_setsigdefault(&attributes_, &all) == 0 &&
                posix_spawnattr_setpgroup(&attributes_, 0) == 0 &&
                posix_spawnattr_setflags(&attributes_,
                                         POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP) == 0;
    }
    ~SpawnAttributes() {
        if (sound_)
            posix_spawnattr_destroy(&attributes_);
    }
    SpawnAttributes(const SpawnAttributes &) = delete;

    bool good() const { return good_; }
    const posix_spawnattr_t *get() const { return &attributes_; }

private:
    posix_spawnattr_t attributes_;
    bool sound_, good_;
};

int milliseconds_until(Clock::time_point end) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return rest < 0 ? 0 : int(rest) + 1;
}

// Everything that comes out of the pipe until its end. None if it is too much, or too late.
std::optional<std::string> read_all(const Descriptor &pipe, Clock::time_point end) {
    std::string text;
    std::vector<char> chunk(1 << 16);
    for (;;) {
        pollfd waits{pipe.number(), POLLIN, 0};
        const int rest = milliseconds_until(end);
        const int ready = rest == 0 ? 0 : poll(&waits, 1, rest);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return std::nullopt;
        const ssize_t got = read(pipe.number(), chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || text.size() + std::size_t(got) > most_listing_bytes)
            return std::nullopt;
        if (got == 0)
            return text;
        text.append(chunk.data(), std::size_t(got));
    }
}

// Ends the child if it does not end itself in time, and waits for it. Returns whether it has not failed: where the
// program ignores SIGCHLD, or waits for all children elsewhere, nobody can tell.
bool wait_for(pid_t child, Clock::time_point end) {
    bool killed = false;
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, killed ? 0 : WNOHANG);
        if (ended == child)
            return !killed && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR)
            return !killed;
        if (ended == 0 && Clock::now() >= end) {
            kill(child, SIGKILL);
            killed = true;
        } else if (ended == 0) {
            const timespec pause{0, 1000000};
            nanosleep(&pause, nullptr);
        }
    }
}

} // namespace

Disassembler::Disassembler(const std::string &path)
    : path_(path.empty()       ? found_program()
            : is_program(path) ? path
                               : "") {
    for (const char *variable : {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"})
        if (const char *value = std::getenv(variable))
            environment_.push_back(std::string(variable) + "=" + value);
}

void Disassembler::prefer(const std::string &path) {
    const Disassembler *const before = preferred.load();
    if (!is_program(path))
        preferred.store(nullptr);
    else if (before == nullptr || before->path() != path)
        preferred.store(new Disassembler(path));
}

const Disassembler &Disassembler::usual() {
    if (const Disassembler *const found = preferred.load())
        return *found;
    static Published<const Disassembler> disassembler;
    return disassembler.get();
}

std::optional<std::string> Disassembler::listing(const std::byte *cubin, std::size_t size,
                                                 const std::vector<std::uint32_t> &symbols,
                                                 std::chrono::milliseconds limit) const {
    if (path_.empty() || limit.count() <= 0 || size > most_cubin_bytes || symbols.size() > most_symbols)
        return std::nullopt;
    const auto end = Clock::now() + limit;
    const Descriptor file = file_of(cubin, size);
    int ends[2];
    if (!file.open() || pipe2(ends, O_CLOEXEC) != 0)
        return std::nullopt;
    Descriptor from(ends[0]), to(ends[1]);
    SpawnActions actions;
    const SpawnAttributes attributes;
    if (!to.raise() || !attributes.good() || !actions.open_null(0, O_RDONLY) || !actions.open_null(2, O_WRONLY) ||
        !actions.give(to, 1) || !actions.give(file, child_cubin))
        return std::nullopt;

    std::vector<std::string> arguments = {path_, "-c"};
    if (!symbols.empty()) {
        std::string numbers;
        for (const std::uint32_t symbol : symbols)
            numbers += (numbers.empty() ? "" : ",") + std::to_string(symbol);
        arguments.insert(arguments.end(), {"-fun", numbers});
    }
    arguments.push_back("/proc/self/fd/" + std::to_string(child_cubin));
    std::vector<char *> argv, envp;
    for (std::string &argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (const std::string &variable : environment_)
        envp.push_back(const_cast<char *>(variable.c_str()));
    envp.push_back(nullptr);

    pid_t child = 0;
    if (posix_spawn(&child, path_.c_str(), actions.get(), attributes.get(), argv.data(), envp.data()) != 0)
        return std::nullopt;
    to.close();
    auto text = read_all(from, end);
    from.close(); // a child that still writes ends
    const bool sound = wait_for(child, text ? end : Clock::now());
    return sound ? std::move(text) : std::nullopt;
}

} // namespace tcuda::kernel_uses
