// The bytes of memory that a launch reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulation/_cpp/kernels/region_builder.hpp"
#include <tcuda_abi.h>

namespace tcuda {

// Bytes that the launch reads, writes, or reads and writes.
struct RecordedRegion {
    enum Kind : unsigned { read = 1, write = 2, both = 3 };

    Region region;
    Kind kind;
    bool exact; // whether the launch has used all bytes of the region
};

// A byte for each byte of a block of memory: `written`, or another number if nothing has written the byte.
struct Marks {
    static constexpr unsigned char written = 255;

    abi::Range block;
    unsigned char *bytes; // null for shared memory, of which a block of threads has written nothing at first
};

class AccessRecorder {
public:
    // `finds_changes` is for modules whose compiler leaves out the check of a write after a read of the same memory: a
    // byte that was read and has another value at the end was written. `strict` says that no object of the module has
    // bytes that nobody writes, such as padding.
    AccessRecorder(bool finds_changes, bool strict) : finds_changes_(finds_changes), strict_(strict) {}

    // Adds the marks of a block that had unwritten bytes when the launch began. The launch has not used the block yet.
    // Takes memory of the host.
    void add_marks(const Marks &marks);

    // Whether mark() may be called for the access. `known` is the memory around the access.
    bool covers(std::uintptr_t address, std::uint64_t size, const abi::Range &known) const;
    // Makes covers() true. Takes memory of the host.
    void cover(std::uintptr_t address, std::uint64_t size, const abi::Range &known);
    void mark(std::uintptr_t address, std::uint64_t size, bool write);
    // The record by which a module notes further accesses near `address` itself.
    abi::Record record_at(std::uintptr_t address, const abi::Range &known);
    // Whether a read uses unwritten bytes. A number needs all of its bytes. A larger access may contain the padding of
    // a structure, which nobody writes, so one written byte is enough there, and everywhere in a module that has such
    // structures.
    bool is_unwritten(std::uintptr_t address, std::uint64_t size);
    // The part of `around` without marks around an access; nothing if the access uses a block with marks.
    std::optional<abi::Range> unmarked(std::uintptr_t address, std::uint64_t size, abi::Range around) const;
    // Whether shared memory has marks.
    bool marks_shared() const;
    // The marked shared memory that contains an access; null if there is none.
    const abi::Range *shared_at(std::uintptr_t address, std::uint64_t size) const;
    // Forgets what the last block of threads has written to shared memory. Takes memory of the host.
    void begin_block();
    // Returns the marks of what a block of threads has written to shared memory, before the block rests. Takes memory
    // of the host.
    std::vector<unsigned long long> written_shared();
    // Brings the marks back when the block goes on. Takes memory of the host.
    void go_on_with(const std::vector<unsigned long long> &written);
    // Changes the marks of the bytes that the launch has written, and returns the beginning of each block with the
    // number of these bytes, without shared memory.
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> keep_marks();

    // Called at the end of the launch, while the memory that the launch has used still exists.
    void finish();
    // The regions of each of the ranges between two neighbouring cuts, which are in ascending order. At most about
    // `most` regions of a range are exact.
    std::vector<RecordedRegion> regions(const std::vector<std::uintptr_t> &cuts, std::size_t most) const;

private:
    static constexpr unsigned words = abi::record_bytes / 64;

    struct Page {
        unsigned long long reads[words];
        unsigned long long writes[words];
        std::unique_ptr<unsigned long long[]> unwritten; // a bit for each byte; null if all bytes are written
        unsigned looks = 0;                              // at `unwritten`
        bool marked = false;                             // whether bytes were unwritten at first
        std::vector<std::pair<std::uintptr_t, std::vector<unsigned char>>> before; // the bytes at an address
    };

    static std::uintptr_t page_of(std::uintptr_t address) { return address >> abi::record_shift; }
    static abi::Range part(std::uintptr_t page, const abi::Range &known);
    static void mark_page(unsigned long long *bits, unsigned first, unsigned last);
    static bool empty(const unsigned long long *bits, unsigned first, unsigned last);
    template <typename Each> void for_marks(std::uintptr_t number, Each each) const;
    template <typename Each> void for_shared(Each each);
    void read_marks(Page &page, std::uintptr_t number) const;
    static void count_left(Page &page);
    void add_runs(RegionBuilder &builder, const abi::Range &range, bool writes) const;
    bool same(const abi::Range &range) const;

    static constexpr unsigned looks_between_counts = 64;
    static constexpr std::uint64_t largest_number = 16;

    const bool finds_changes_;
    const bool strict_;
    std::vector<Marks> marks_; // in ascending order
    std::vector<std::uintptr_t> shared_pages_; // the numbers of the pages with shared memory
    std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
    std::vector<std::uintptr_t> order_; // the numbers of the pages in ascending order, after finish()
};

} // namespace tcuda
