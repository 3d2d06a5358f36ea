// The part of a Grid that describes why a launch has failed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "emulation/_cpp/kernels/block_fibers.hpp"

namespace tcuda {

void Grid::fail(void *grid, const char *kind, const char *text, const char *file, int line, const char *function,
                const void *site) {
    auto &self = *static_cast<Grid *>(grid);
    self.thread_ = *self.interface_.thread;
    if (site == nullptr && line == 0)
        site = __builtin_return_address(0); // in the function of the kernel, unless the core has found the failure
    self.failure_ = {kind, text, file, function, line, self.code_of(site)};
    self.failed_ = true;
    self.current_->context.switch_to(self.scheduler_); // does not return
}

// In a fiber, after its code was refused.
void Grid::leave() {
    using Reason = RefusedInstruction::Reason;
    const std::uintptr_t address = refused_.address;
    const auto at = static_cast<unsigned long long>(address);
    const auto *site = reinterpret_cast<const char *>(refused_.code) + 1; // as behind a call
    switch (refused_.reason) {
    case Reason::access:
        if (const ThreadStacks *stacks = stacks_with(address); stacks != nullptr && stacks->guards(address)) {
            std::snprintf(text_, sizeof text_,
                          "the thread needs more than the %zu KiB of its stack, or an index of a local array is wrong",
                          ThreadStacks::size >> 10);
            fail(this, "trap", text_, "", 0, "", site);
        }
        if (address >= launch_.constants.begin && address < launch_.constants.end) {
            std::snprintf(text_, sizeof text_, "%llu", at);
            fail(this, "constant", text_, "", 0, "", site);
        }
        std::snprintf(text_, sizeof text_, "Invalid access at %#llx", at);
        fail(this, address == 0 ? "trap" : "memory", text_, "", 0, "",
             site); // A GPU reports the address 0 like __trap().
        break;
    case Reason::no_address:
        fail(this, "memory", "Invalid access at a number that is too large for an address", "", 0, "", site);
        break;
    case Reason::alignment:
        fail(this, "misaligned", "Misaligned access to a vector", "", 0, "", site);
        break;
    case Reason::call:
        std::snprintf(
            text_, sizeof text_,
            "no code is at %#llx, where the kernel goes on: a pointer to a function is wrong, or a write beyond "
            "a local array has changed the place to return to",
            at);
        fail(this, "trap", text_, "", 0, "", site);
        break;
    case Reason::division:
        fail(this, "divide", "division of an integer by zero, or the quotient of two integers overflows", "", 0, "",
             site);
        break;
    case Reason::instruction:
        fail(this, "trap", "the kernel reaches code that has no meaning, such as __builtin_trap()", "", 0, "", site);
        break;
    }
    __builtin_unreachable();
}

// In the handler of a signal. The thread is never resumed, so its stack is free for leave().
char *Grid::note(const RefusedInstruction &refused) noexcept {
    refused_ = refused;
    return stacks_[current_->place / ThreadStacks::count]->top(current_->place % ThreadStacks::count);
}

void Grid::describe_failure() {
    if (std::strcmp(failure_.kind, "deadlock") == 0)
        describe_deadlock();
    else
        fault_ = {failure_.kind, failure_.text, failure_.file, failure_.function, failure_.line, {failure_.code}};
    if (fault_.kind == "timeout")
        fault_.text += advice_for_waits();
}

// Advice for a block that waits for a block which cannot begin before this block has ended.
std::string Grid::advice_for_waits() const {
    if (block_place_ + 1 == blocks_ || resting_.size() + 1 < most_resident())
        return "";
    return ". The block may wait for a block that has not begun: an H200 runs " + std::to_string(most_resident()) +
           " blocks of this size at the same time. Let the blocks take their numbers from a counter by atomicAdd(), in "
           "place of blockIdx, and wait for blocks with smaller numbers only";
}

// Describes where the threads wait when no thread can go on.
void Grid::describe_deadlock() {
    std::vector<std::pair<std::string, unsigned>> reasons; // in the order of the first thread
    std::vector<std::uintptr_t> codes;
    std::string text;
    for (const Fiber *fiber : fiber_of_) {
        if (fiber == nullptr)
            continue;
        const std::uintptr_t code = code_of(fiber->site);
        if (std::find(codes.begin(), codes.end(), code) == codes.end())
            codes.push_back(code);
        const std::string reason = reason_of(*fiber);
        const auto known =
            std::find_if(reasons.begin(), reasons.end(), [&](const auto &entry) { return entry.first == reason; });
        if (known != reasons.end()) {
            ++known->second;
            continue;
        }
        if (reasons.empty())
            thread_ = fiber->thread;
        reasons.emplace_back(reason, 1);
    }
    for (const auto &[reason, count] : reasons)
        text += (text.empty() ? "" : ", ") + std::to_string(count) +
                (count == 1 ? " thread waits at " : " threads wait at ") + reason;
    const unsigned returned = threads_ - waiting_;
    if (returned != 0)
        text += ", " + std::to_string(returned) + (returned == 1 ? " thread has returned" : " threads have returned");
    fault_ = {"deadlock", text, "", "", 0, std::move(codes)};
}

std::string Grid::reason_of(const Fiber &fiber) {
    char text[64];
    switch (fiber.wait) {
    case Fiber::Wait::block:
        return "__syncthreads()";
    case Fiber::Wait::warp:
        std::snprintf(text, sizeof text, "a warp function with the mask 0x%08x", fiber.mask);
        return text;
    case Fiber::Wait::phase:
        return "a cuda::barrier or this_grid().sync()";
    default:
        return "__activemask()";
    }
}

} // namespace tcuda
