// NVIDIA's disassembler, a program that the user may have installed.
#pragma once

#include <chrono>
#include <utility>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tcuda::kernel_uses {

// Any thread may call any function, with and without Python's lock, also in a forked child: the state of an object does
// not change. The handling of signals and of other children of the process stays as it is.
class Disassembler {
public:
    // `path` is the program. If `path` is empty, the constructor looks for the program in the folders that CUDA_PATH,
    // CUDA_HOME and PATH name, and in /usr/local/cuda.
    explicit Disassembler(const std::string &path = {});
    Disassembler(const Disassembler &) = delete;
    Disassembler &operator=(const Disassembler &) = delete;

    // The preferred one; without a preference, the one that is found at the first call.
    static const Disassembler &usual();

    // Lets usual() give the program at `path` from now on. Without such a program, there is no preference.
    static void prefer(const std::string &path);

    // Empty if there is none.
    const std::string &path() const { return path_; }

    // The listing of the sections that hold the symbols with these numbers, or of all sections if there are no symbols.
    // None if there is no disassembler, if it refuses the cubin, or if it needs more than `limit`. Without any time, it
    // is not started.
    std::optional<std::string> listing(const std::byte *cubin, std::size_t size,
                                       const std::vector<std::uint32_t> &symbols,
                                       std::chrono::milliseconds limit) const;

private:
    std::string path_;
    std::vector<std::string> environment_; // a copy, because the process may change its environment later
};

} // namespace tcuda::kernel_uses
