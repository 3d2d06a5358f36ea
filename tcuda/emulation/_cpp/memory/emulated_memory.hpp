// The memory of an emulated device: memory of the host up to a limit, with CUDA's rules for pointers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "emulation/_cpp/memory/emulated_arena.hpp"
#include "emulation/_cpp/memory/shared_file.hpp"

namespace tcuda {

// The memory lies in one file in memory, which other processes can map: blocks in the first part of the file, physical
// memory in the second part. On a system without such files, the memory is private to the process, and nothing can be
// exported.
//
// Lock rule: every member function holds `mutex_` for its own duration, and calls nothing that could come back here. No
// function of this class calls Python.
// Lifetime rule: the destructor releases the blocks that are still live.
// Fork rule: the memory belongs to the process that uses it first. A child that is forked later shares the memory with
// its parent, and so gets no memory and gives none back.
class EmulatedMemory {
public:
    struct Block {
        std::uintptr_t address;
        std::size_t size;
    };

    // The place of a block in the file.
    struct Place {
        std::size_t offset, size;
    };

    explicit EmulatedMemory(std::size_t limit);
    ~EmulatedMemory();
    EmulatedMemory(const EmulatedMemory &) = delete;
    EmulatedMemory &operator=(const EmulatedMemory &) = delete;

    // The address of a new block of `size` bytes, aligned as cudaMalloc aligns. The address is 0 if the limit or the
    // host refuses the block, and if the size is 0, as with cudaMalloc. place_of() refuses a block that is not
    // `exportable`.
    std::uintptr_t allocate(std::size_t size, bool exportable = true);

    // Frees the block that begins at `address`. False, with nothing changed, if no live block begins there.
    bool release(std::uintptr_t address);

    // Keeps memory accessible that is freed, unreserved or unmapped from now on, for work that still has to be done.
    // The memory counts as free, but its addresses are not used again before give_back(), except that a reserved range
    // may be mapped again. Unmapped memory has other contents at once.
    void keep_freed();
    // The bytes that are kept.
    std::size_t kept() const;
    // Gives the kept memory back to the system.
    void give_back();

    // Treats memory of the host, which somebody else has allocated, as memory of the device. The memory does not count
    // as used. Nothing happens if the memory is of the device already.
    void adopt(std::uintptr_t address, std::size_t size);
    // Ends that for the memory that begins at `address`.
    void disown(std::uintptr_t address);

    // The live block, the imported block, the adopted memory, or the mapped range without a gap, that contains
    // `address`.
    std::optional<Block> block_at(std::uintptr_t address) const;

    // A few ranges that contain all memory that block_at() knows, and other addresses.
    std::vector<Block> bounds() const;

    // Whether `address` is reserved and not mapped.
    bool is_unmapped(std::uintptr_t address) const;
    // How often memory of any device was unmapped. As long as the number stays, mapped addresses stay mapped.
    static std::size_t unmaps() { return unmaps_.load(std::memory_order_relaxed); }

    // Blocks in several processes. The descriptor of the file is -1 if the memory is private.
    int descriptor();
    // The place of the exportable block that contains `address`.
    std::optional<Place> place_of(std::uintptr_t address) const;
    // Maps a block of the file of `descriptor`, which stays the caller's. Imported memory does not count as used.
    // Returns 0 after a failure.
    std::uintptr_t import_block(int descriptor, Place place);
    // Unmaps the imported block that begins at `address`. False, with nothing changed, if none begins there.
    bool close_import(std::uintptr_t address);

    // Virtual memory, as with cuMemAddressReserve, cuMemCreate and cuMemMap. Sizes are multiples of `page`. Physical
    // memory is all zeros at first, keeps its contents, and lives until it is destroyed and unmapped. Each function
    // returns whether it succeeded.
    bool reserve(std::size_t size, std::uintptr_t *address);
    bool unreserve(std::uintptr_t address, std::size_t size);
    bool create(std::size_t size, std::uint64_t *physical);
    bool destroy(std::uint64_t physical);
    bool map(std::uintptr_t address, std::size_t size, std::uint64_t physical);
    bool unmap(std::uintptr_t address, std::size_t size);

    // Physical memory in several processes, as with cuMemExportToShareableHandle. An exported descriptor keeps the
    // memory alive, also when this process has ended. Imported memory does not count as used.
    bool export_physical(std::uint64_t physical, int *descriptor);
    bool import_physical(int descriptor, std::uint64_t *physical);

    std::size_t limit() const { return limit_; }
    std::size_t used() const;
    std::size_t live() const; // blocks, imported blocks, mappings and reservations

    static constexpr std::size_t alignment = EmulatedArena::unit;
    static constexpr std::size_t page = std::size_t(2) << 20;

private:
    struct LiveBlock {
        std::size_t size; // the requested size
        bool exportable;
    };
    struct Import {
        std::size_t size;
        Block mapping; // of whole pages
    };
    // Physical memory. `references` counts the handle and the mappings.
    struct Physical {
        std::size_t size;
        std::size_t offset; // in `file`
        std::shared_ptr<SharedFile> file;
        bool imported = false;
        bool held = false;
        int references = 1;
    };
    struct Mapping {
        std::size_t size;
        std::shared_ptr<Physical> physical;
    };

    static constexpr unsigned nobody = ~0U;

    static std::size_t rounded(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }
    // How give_back() gives kept memory to the system.
    enum class Return { release, unreserve, unmap };
    struct Kept {
        Return how;
        Block range;
    };

    bool in_child() const;
    void keep(Return how, std::uintptr_t address, std::size_t size) noexcept;
    bool is_reserved_and_unmapped(Block range) const;
    void join_mapped(std::map<std::uintptr_t, std::uintptr_t>::iterator range) noexcept;
    const std::shared_ptr<SharedFile> &file();
    EmulatedArena &arena();
    void drop(Physical &physical);
    void discard_abandoned();

    const std::size_t limit_;
    mutable std::atomic<unsigned> owner_{nobody}; // forks() in the process that used the memory first
    mutable std::mutex mutex_;
    static inline std::atomic<std::size_t> unmaps_{0};
    bool asked_file_ = false;
    std::shared_ptr<SharedFile> file_;
    std::unique_ptr<EmulatedArena> arena_;
    std::map<std::uintptr_t, LiveBlock> blocks_;
    std::map<std::uintptr_t, Import> imports_;
    std::map<std::uintptr_t, std::size_t> adopted_; // address -> size
    std::map<std::uintptr_t, std::size_t> reservations_; // address -> size
    std::map<std::uintptr_t, Mapping> mappings_;
    std::map<std::uintptr_t, std::uintptr_t> mapped_; // the begin and the end of each mapped range without a gap
    std::map<std::uint64_t, std::shared_ptr<Physical>> physical_; // by number
    std::vector<Place> abandoned_; // destroyed physical memory that another process or a descriptor still held
    bool keeps_freed_ = false;
    std::vector<Kept> kept_;
    std::size_t kept_bytes_ = 0;
    std::uint64_t next_physical_ = 1;
    std::size_t next_offset_;
    std::size_t used_ = 0; // the sum of the rounded sizes
};

} // namespace tcuda
