// A file in memory, without a name, that other processes can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace tcuda {

// The file is sparse and has the largest size that every system allows: pages take memory once they are written.
//
// A process that needs the contents of a range holds the range. The last process that lets a range go gives its pages
// back to the system. A hold is a lock of the file, so the hold of a process ends with the process.
//
// Fork rule: a forked child has the mappings and the locks of its parent. So a child gives nothing back, and lets
// nothing go: is_usable() is false there.
class SharedFile {
public:
    // A new file; null if the system has no such files.
    static std::shared_ptr<SharedFile> create();

    // The file of a descriptor; null if `descriptor` is not of such a file. The descriptor stays the caller's. The same
    // file is the same object.
    static std::shared_ptr<SharedFile> open(int descriptor);

    ~SharedFile();
    SharedFile(const SharedFile &) = delete;
    SharedFile &operator=(const SharedFile &) = delete;

    int descriptor() const { return descriptor_; }
    bool is_usable() const;

    // Maps a range at `address`, where it replaces what is mapped, or anywhere if `address` is 0. Returns 0 after a
    // failure.
    std::uintptr_t map(std::uintptr_t address, std::size_t offset, std::size_t size) const;

    // Gives the pages of a range back. The range reads as zeros then.
    void discard(std::size_t offset, std::size_t size) const;

    // Holds and lets go a range. The ranges of a file never overlap, but for equal ones. let_go() returns whether no
    // process holds the range any more; the pages are given back then.
    bool hold(std::size_t offset, std::size_t size);
    bool let_go(std::size_t offset, std::size_t size);

    // Gives the pages of a range back unless a process holds the range. Returns whether no process does.
    bool discard_unless_held(std::size_t offset, std::size_t size);

    // A descriptor for another process, positioned at the range, that holds the range until the descriptor is closed
    // in all processes; -1 after a failure.
    int share(std::size_t offset, std::size_t size) const;

    // Reads and writes bytes at a place. Returns whether all bytes were read or written.
    bool read(std::size_t offset, void *bytes, std::size_t size) const;
    bool write(std::size_t offset, const void *bytes, std::size_t size) const;

private:
    using Identity = std::pair<std::uint64_t, std::uint64_t>; // the device and the number of the file

    SharedFile(int descriptor, Identity identity);
    bool discard_if_free(std::size_t offset, std::size_t size) const;

    const int descriptor_;
    const Identity identity_;
    const unsigned forks_;
    std::mutex mutex_; // guards `holds_`; only the system is called under the mutex
    std::map<std::size_t, std::size_t> holds_; // the number of holds of this process, by offset
};

// How often this process, and the processes from which it was forked, have forked: the number differs in a child.
unsigned forks();

} // namespace tcuda
