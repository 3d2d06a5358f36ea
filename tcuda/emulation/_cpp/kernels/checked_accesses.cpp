// The part of a Grid that knows the memory that the kernel may use, and notes the accesses.
#include <algorithm>
#include <stdexcept>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {

void Grid::allow(abi::Range range) {
    if (running_)
        throw std::logic_error("memory is allowed while another thread runs the launch");
    memory_.admit(range);
}

void Grid::mark(const Marks &marks) {
    if (running_)
        throw std::logic_error("memory is marked while another thread runs the launch");
    if (launch_.marked)
        recorder_->add_marks(marks);
}

// Lets the fast check know the memory of the module up to the dynamic shared memory.
void Grid::use_own_memory() {
    // A recorder must see the accesses to global variables.
    const bool all = (!launch_.recorded || launch_.variables.empty()) && !marks_own_;
    const auto shared = reinterpret_cast<std::uintptr_t>(interface_.dynamic_shared);
    *interface_.own_bytes = all ? shared - module_.range().begin : 0;
    *interface_.written_bytes = all ? shared - module_.headers().end : 0;
}

abi::Span Grid::resolve(void *grid, std::uintptr_t address, unsigned long long size, bool write, const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    const abi::Span found = self.resolved(address, size, write, site);
    if (self.races_ == nullptr || address - found.begin >= found.bytes)
        return found;
    const auto slot = abi::slot_place(reinterpret_cast<std::uintptr_t>(site));
    // No other thread may use the stack of a thread.
    const abi::Range part = self.races_->open_slot(slot, address, {found.begin, found.begin + found.bytes},
                                                   self.stacks_with(address) == nullptr);
    return {part.begin, part.end - part.begin};
}

// The memory around an access that the slot of the access may have.
abi::Span Grid::resolved(std::uintptr_t address, unsigned long long size, bool write, const void *site) {
    // A thread that spins reads. A write may be the end of an atomic function, so no other thread may run before it.
    if (take_interruption())
        interrupt_thread(!write);
    for (;;) {
        if (const abi::Range *range = memory_.find(address, size)) {
            if (recorder_ == nullptr)
                return {range->begin, range->end - range->begin};
            const abi::Range *recorded = memory_.of_device(address, size, *range);
            if (recorded == nullptr && marks_own_)
                recorded = recorder_->shared_at(address, size);
            if (recorded == nullptr) {
                const abi::Range around = memory_.between_variables(address, *range);
                const abi::Range unmarked = recorder_->unmarked(address, size, around).value_or(around);
                return {unmarked.begin, unmarked.end - unmarked.begin};
            }
            if (!launch_.recorded) {
                const auto unmarked = recorder_->unmarked(address, size, *recorded);
                if (unmarked)
                    return {unmarked->begin, unmarked->end - unmarked->begin};
            }
            if (size != 0)
                record({address, size, write, code_of(site)}, *recorded);
            // The slot keeps its contents, because memory with a record is in no slot.
            const abi::Span &slot = interface_.slots[abi::slot_place(reinterpret_cast<std::uintptr_t>(site))];
            return {slot.begin, __atomic_load_n(&slot.bytes, __ATOMIC_RELAXED)};
        }
        // A kernel reads variables of the headers, such as the index of the thread.
        const abi::Range headers = module_.headers();
        if (!write && address - headers.begin < headers.end - headers.begin && size <= headers.end - address)
            return {headers.begin, headers.end - headers.begin};
        Fiber *fiber = current_;
        access_ = {address, size, write, code_of(site)};
        thread_ = *interface_.thread;
        asks_ = true;
        resumed_ = fiber;
        fiber->context.switch_to(scheduler_);
    }
}

// In a fiber: notes an access, and lets the module note further accesses to the same page.
void Grid::record(const Access &access, const abi::Range &known) {
    const auto [address, size, write, code] = access;
    if (!recorder_->covers(address, size, known)) {
        // The recorder takes memory of the host, which code on a fiber must not do.
        access_ = access;
        covered_ = known;
        uncovered_ = true;
        Fiber *fiber = resumed_ = current_;
        fiber->context.switch_to(scheduler_);
    }
    if (!write && recorder_->is_unwritten(address, size))
        note_unwritten(access);
    recorder_->mark(address, size, write);
    const abi::Record found = recorder_->record_at(address, known);
    abi::Record &record = interface_.records[abi::record_place(address)];
    record.begin = found.begin;
    record.reads = found.reads;
    record.writes = found.writes;
    __atomic_store_n(&record.read_bytes, found.read_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&record.bytes, found.bytes, __ATOMIC_RELAXED); // interrupt() may write the size at the same time
}

// In a fiber, which must not take memory of the host. So the reads at further places are left out if the list is full.
void Grid::note_unwritten(const Access &access) {
    const auto known = std::find_if(unwritten_reads_.begin(), unwritten_reads_.end(),
                                    [&](const UnwrittenReads &each) { return each.code == access.code; });
    if (known != unwritten_reads_.end())
        ++known->count;
    else if (unwritten_reads_.size() < unwritten_reads_.capacity())
        unwritten_reads_.push_back({access.address, access.size, access.code, *interface_.thread, block_, 1});
}

std::uintptr_t Grid::code_of(const void *site) const {
    const abi::Range library = module_.range();
    const auto place = reinterpret_cast<std::uintptr_t>(site);
    return place >= library.begin && place < library.end ? place - library.begin : 0;
}

void Grid::touch(void *grid, std::uintptr_t address, unsigned long long size, abi::Touch touch, const void *site) {
    const auto &self = *static_cast<Grid *>(grid);
    if (self.stacks_with(address) == nullptr)
        self.races_->touch(self.interface_.races->thread, address, size, touch, reinterpret_cast<std::uintptr_t>(site));
}

void Grid::fence(void *grid, abi::Scope scope) {
    const auto &self = *static_cast<Grid *>(grid);
    self.races_->fence(self.interface_.races->thread, scope);
}

} // namespace tcuda
