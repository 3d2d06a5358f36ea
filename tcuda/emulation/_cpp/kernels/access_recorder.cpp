#include "emulation/_cpp/kernels/access_recorder.hpp"

#include <algorithm>

namespace tcuda {

// The part of a page that is in the range.
abi::Range AccessRecorder::part(std::uintptr_t page, const abi::Range &known) {
    const std::uintptr_t begin = page << abi::record_shift;
    return {std::max(begin, known.begin), std::min(begin + abi::record_bytes, known.end)};
}

void AccessRecorder::add_marks(const Marks &marks) {
    const auto begins_before = [](const Marks &one, const Marks &other) { return one.block.begin < other.block.begin; };
    marks_.insert(std::upper_bound(marks_.begin(), marks_.end(), marks, begins_before), marks);
    for (std::uintptr_t number = page_of(marks.block.begin); number <= page_of(marks.block.end - 1); ++number) {
        const auto found = pages_.find(number);
        if (found != pages_.end())
            read_marks(*found->second, number);
    }
}

bool AccessRecorder::covers(std::uintptr_t address, std::uint64_t size, const abi::Range &known) const {
    for (std::uintptr_t page = page_of(address); page <= page_of(address + size - 1); ++page) {
        const auto found = pages_.find(page);
        if (found == pages_.end())
            return false;
        const std::uintptr_t begin = part(page, known).begin;
        const auto &before = found->second->before;
        if (finds_changes_ &&
            std::none_of(before.begin(), before.end(), [&](const auto &copy) { return copy.first == begin; }))
            return false;
    }
    return true;
}

void AccessRecorder::cover(std::uintptr_t address, std::uint64_t size, const abi::Range &known) {
    for (std::uintptr_t number = page_of(address); number <= page_of(address + size - 1); ++number) {
        std::unique_ptr<Page> &page = pages_[number];
        if (page == nullptr) {
            page.reset(new Page());
            read_marks(*page, number);
            if (shared_at(std::max(address, number << abi::record_shift), 1) != nullptr)
                shared_pages_.push_back(number);
        }
        if (!finds_changes_)
            continue;
        const abi::Range copied = part(number, known);
        if (copied.begin >= copied.end)
            continue;
        const auto *bytes = reinterpret_cast<const unsigned char *>(copied.begin);
        page->before.emplace_back(copied.begin, std::vector<unsigned char>(bytes, bytes + (copied.end - copied.begin)));
    }
}

// Calls `each` for the words of a page that have bytes of marked blocks: with the number of the word, the block, the
// marks of the first byte that the word has of the block, the place of this byte in the word, and the number of bytes.
template <typename Each> void AccessRecorder::for_marks(std::uintptr_t number, Each each) const {
    const std::uintptr_t page = number << abi::record_shift;
    const auto ends_before = [](const Marks &marks, std::uintptr_t place) { return marks.block.end <= place; };
    auto found = std::lower_bound(marks_.begin(), marks_.end(), page, ends_before);
    for (; found != marks_.end() && found->block.begin < page + abi::record_bytes; ++found) {
        const abi::Range shared = part(number, found->block);
        for (std::uintptr_t address = shared.begin; address < shared.end;) {
            const std::uintptr_t end = std::min<std::uintptr_t>(shared.end, (address / 64 + 1) * 64);
            unsigned char *const bytes =
                found->bytes == nullptr ? nullptr : found->bytes + (address - found->block.begin);
            each(static_cast<unsigned>((address - page) / 64), *found, bytes, static_cast<unsigned>(address % 64),
                 static_cast<unsigned>(end - address));
            address = end;
        }
    }
}

void AccessRecorder::read_marks(Page &page, std::uintptr_t number) const {
    for_marks(number, [&](unsigned word, const Marks &, const unsigned char *marks, unsigned first, unsigned count) {
        unsigned long long bits = 0;
        for (unsigned place = 0; place < count; ++place)
            bits |= static_cast<unsigned long long>(marks == nullptr || marks[place] != Marks::written) << place;
        if (bits == 0)
            return;
        if (page.unwritten == nullptr)
            page.unwritten.reset(new unsigned long long[words]());
        page.unwritten[word] |= bits << first;
    });
    page.marked = page.unwritten != nullptr;
}

std::optional<abi::Range> AccessRecorder::unmarked(std::uintptr_t address, std::uint64_t size,
                                                   abi::Range around) const {
    const auto ends_before = [](const Marks &marks, std::uintptr_t place) { return marks.block.end <= place; };
    const auto after = std::lower_bound(marks_.begin(), marks_.end(), address, ends_before);
    if (after != marks_.begin())
        around.begin = std::max(around.begin, (after - 1)->block.end);
    if (after != marks_.end()) {
        if (after->block.begin < address + size)
            return std::nullopt;
        around.end = std::min(around.end, after->block.begin);
    }
    return around;
}

bool AccessRecorder::is_unwritten(std::uintptr_t address, std::uint64_t size) {
    Page &first = *pages_.find(page_of(address))->second;
    if (first.unwritten == nullptr)
        return false;
    const bool needs_all = strict_ && size <= largest_number;
    for (std::uintptr_t place = address; place < address + size; ++place) {
        const Page &page = *pages_.find(page_of(place))->second;
        const auto bit = static_cast<unsigned>(place % abi::record_bytes);
        const bool unwritten = page.unwritten != nullptr && (page.unwritten[bit / 64] >> bit % 64 & 1) != 0 &&
                               (page.writes[bit / 64] >> bit % 64 & 1) == 0;
        if (unwritten == needs_all) {
            if (needs_all)
                return true;
            count_left(first);
            return false;
        }
    }
    if (needs_all)
        count_left(first);
    return !needs_all;
}

// Called after looks that find nothing: forgets the unwritten bytes of a page when all of them are written.
void AccessRecorder::count_left(Page &page) {
    if (++page.looks % looks_between_counts != 0)
        return;
    unsigned long long left = 0;
    for (unsigned word = 0; word < words; ++word)
        left |= page.unwritten[word] & ~page.writes[word];
    if (left == 0)
        page.unwritten.reset();
}

std::vector<std::pair<std::uintptr_t, std::uint64_t>> AccessRecorder::keep_marks() {
    std::vector<std::uint64_t> counts(marks_.size());
    for (const auto &[number, kept] : pages_) {
        const Page &page = *kept;
        if (!page.marked)
            continue;
        for_marks(number, [&](unsigned word, const Marks &block, unsigned char *marks, unsigned first, unsigned count) {
            if (marks == nullptr)
                return;
            const unsigned long long writes = page.writes[word] >> first;
            for (unsigned place = 0; place < count; ++place) {
                if ((writes >> place & 1) != 0 && marks[place] != Marks::written) {
                    marks[place] = Marks::written;
                    ++counts[static_cast<std::size_t>(&block - marks_.data())];
                }
            }
        });
    }
    std::vector<std::pair<std::uintptr_t, std::uint64_t>> found;
    for (std::size_t place = 0; place < marks_.size(); ++place)
        if (counts[place] != 0)
            found.emplace_back(marks_[place].block.begin, counts[place]);
    return found;
}

bool AccessRecorder::marks_shared() const {
    return std::any_of(marks_.begin(), marks_.end(), [](const Marks &each) { return each.bytes == nullptr; });
}

const abi::Range *AccessRecorder::shared_at(std::uintptr_t address, std::uint64_t size) const {
    for (const Marks &marks : marks_)
        if (marks.bytes == nullptr && address >= marks.block.begin && address + size <= marks.block.end)
            return &marks.block;
    return nullptr;
}

// Calls `each` with the writes of each word that has bytes of shared memory, and with the bits of these bytes, always
// in the same order. The words of a page follow those of the pages that were covered before.
template <typename Each> void AccessRecorder::for_shared(Each each) {
    for (const std::uintptr_t number : shared_pages_) {
        Page &page = *pages_.find(number)->second;
        for_marks(number,
                  [&](unsigned word, const Marks &, const unsigned char *marks, unsigned first, unsigned count) {
                      if (marks == nullptr)
                          each(page.writes[word], ~0ull >> (64 - count) << first);
                  });
    }
}

void AccessRecorder::begin_block() {
    for_shared([](unsigned long long &writes, unsigned long long shared) { writes &= ~shared; });
    for (const std::uintptr_t number : shared_pages_)
        read_marks(*pages_.find(number)->second, number);
}

std::vector<unsigned long long> AccessRecorder::written_shared() {
    std::vector<unsigned long long> written;
    for_shared(
        [&](const unsigned long long &writes, unsigned long long shared) { written.push_back(writes & shared); });
    return written;
}

void AccessRecorder::go_on_with(const std::vector<unsigned long long> &written) {
    begin_block();
    auto next = written.begin();
    for_shared([&](unsigned long long &writes, unsigned long long) {
        if (next != written.end()) // the block has written nothing to the pages behind
            writes |= *next++;
    });
}

void AccessRecorder::mark_page(unsigned long long *bits, unsigned first, unsigned last) {
    for (unsigned word = first / 64; word <= (last - 1) / 64; ++word) {
        const unsigned from = std::max(first, word * 64) - word * 64, to = std::min(last, word * 64 + 64) - word * 64;
        bits[word] |= ~0ull >> (64 - (to - from)) << from;
    }
}

void AccessRecorder::mark(std::uintptr_t address, std::uint64_t size, bool write) {
    const std::uintptr_t end = address + size;
    while (address < end) {
        const std::uintptr_t number = page_of(address), begin = number << abi::record_shift;
        const std::uintptr_t last = std::min<std::uintptr_t>(end, begin + abi::record_bytes);
        Page &page = *pages_.find(number)->second;
        mark_page(write ? page.writes : page.reads, static_cast<unsigned>(address - begin),
                  static_cast<unsigned>(last - begin));
        address = last;
    }
}

abi::Record AccessRecorder::record_at(std::uintptr_t address, const abi::Range &known) {
    Page &page = *pages_.find(page_of(address))->second;
    const abi::Range noted = part(page_of(address), known);
    const std::uintptr_t bytes = noted.end - noted.begin;
    return {noted.begin, bytes, page.reads, page.writes, page.unwritten == nullptr ? bytes : 0};
}

void AccessRecorder::finish() {
    order_.clear();
    for (const auto &entry : pages_)
        order_.push_back(entry.first);
    std::sort(order_.begin(), order_.end());
    for (auto &[number, page] : pages_) {
        for (auto &[address, bytes] : page->before) {
            const auto *now = reinterpret_cast<const unsigned char *>(address);
            const unsigned first = static_cast<unsigned>(address % abi::record_bytes);
            for (unsigned place = 0; place < bytes.size(); ++place) {
                const unsigned bit = first + place;
                if (bytes[place] != now[place] && (page->reads[bit / 64] >> bit % 64 & 1) != 0)
                    page->writes[bit / 64] |= 1ull << bit % 64;
            }
        }
        page->before.clear();
    }
}

void AccessRecorder::add_runs(RegionBuilder &builder, const abi::Range &range, bool writes) const {
    std::uintptr_t begin = 0, end = 0; // the run that may still grow
    const auto first = std::lower_bound(order_.begin(), order_.end(), page_of(range.begin));
    for (auto number = first; number != order_.end() && *number << abi::record_shift < range.end; ++number) {
        const Page &page = *pages_.find(*number)->second;
        const unsigned long long *bits = writes ? page.writes : page.reads;
        for (unsigned word = 0; word < words; ++word) {
            unsigned long long left = bits[word];
            const std::uintptr_t start = (*number << abi::record_shift) + word * 64;
            if (left == 0 || start + 64 <= range.begin || start >= range.end)
                continue;
            if (start < range.begin)
                left &= ~0ull << (range.begin - start);
            if (range.end - start < 64)
                left &= ~(~0ull << (range.end - start));
            while (left != 0) {
                const auto low = static_cast<unsigned>(__builtin_ctzll(left));
                const unsigned long long rest = ~(left >> low);
                const unsigned length = rest == 0 ? 64 : static_cast<unsigned>(__builtin_ctzll(rest));
                if (start + low != end) {
                    if (begin != end)
                        builder.add(begin, end);
                    begin = start + low;
                }
                end = start + low + length;
                left &= length + low == 64 ? 0 : ~0ull << (low + length);
            }
        }
    }
    if (begin != end)
        builder.add(begin, end);
}

// Whether the launch reads and writes the same bytes of the range. The range ends and begins at most in one page each
// that it shares with other ranges.
bool AccessRecorder::same(const abi::Range &range) const {
    const auto first = std::lower_bound(order_.begin(), order_.end(), page_of(range.begin));
    for (auto number = first; number != order_.end() && *number << abi::record_shift < range.end; ++number) {
        const Page &page = *pages_.find(*number)->second;
        for (unsigned word = 0; word < words; ++word) {
            const std::uintptr_t start = (*number << abi::record_shift) + word * 64;
            unsigned long long differences = page.reads[word] ^ page.writes[word];
            if (differences == 0 || start + 64 <= range.begin || start >= range.end)
                continue;
            if (start < range.begin)
                differences &= ~0ull << (range.begin - start);
            if (range.end - start < 64)
                differences &= ~(~0ull << (range.end - start));
            if (differences != 0)
                return false;
        }
    }
    return true;
}

std::vector<RecordedRegion> AccessRecorder::regions(const std::vector<std::uintptr_t> &cuts, std::size_t most) const {
    std::vector<RecordedRegion> found;
    const auto add = [&](const abi::Range &range, bool writes, RecordedRegion::Kind kind) {
        RegionBuilder builder(most);
        add_runs(builder, range, writes);
        for (const Region &region : builder.take())
            found.push_back({region, kind, builder.exact()});
    };
    for (std::size_t place = 0; place + 1 < cuts.size(); ++place) {
        const abi::Range range{cuts[place], cuts[place + 1]};
        if (range.begin >= range.end)
            continue;
        if (same(range)) {
            add(range, true, RecordedRegion::both);
        } else {
            add(range, false, RecordedRegion::read);
            add(range, true, RecordedRegion::write);
        }
    }
    return found;
}

} // namespace tcuda
