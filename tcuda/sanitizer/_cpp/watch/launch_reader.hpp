// What the launch of a kernel does with memory.
#pragma once

#include "sanitizer/_cpp/order/race_detector.hpp"
#include "sanitizer/_cpp/watch/kernel_questions.hpp"
#include "sanitizer/_cpp/watch/kernel_table.hpp"
#include "sanitizer/_cpp/watch/launch_uses.hpp"

namespace tcuda::watch {

// The knowledge about a launch, in the order of trust:
//
// 1. the notes of an annotation of the user (`exclusive`), also of an annotation around other notes;
// 2. the description of the kernel;
// 3. the notes of a library call (`kind_known`);
// 4. the PTX of the kernel;
// 5. the types of the parameters in the mangled name of the kernel;
// 6. nothing: each word of the parameters that points into live memory may be read and written.
//
// A pointer counts only if it points into a live allocation of the detector. The extent of the memory comes from the
// CArray that the pointer begins, otherwise from a note that has the pointer, otherwise the memory is the rest of the
// allocation, and the use is possible only.
//
// A noted region of a library call that no word of the parameters points to is possible only: the call may consist of
// several kernels, each of which uses a part of the memory.
class LaunchReader final : public LaunchUses {
public:
    // All of these must outlive the reader.
    LaunchReader(races::RaceDetector &detector, KernelTable &kernels, const KernelQuestions &questions)
        : detector_(detector), kernels_(kernels), questions_(questions) {
        kernels.forget_functions(); // functions may have come and gone before
    }
    LaunchReader(const LaunchReader &) = delete;
    LaunchReader &operator=(const LaunchReader &) = delete;

    bool may_use_memory() const override;
    NamedOperation uses_of(const Launch &launch) override;

    void module_loaded(Module, const void *image) override;
    void module_unloaded(Module module) override { kernels_.forget(module); }

private:
    races::RaceDetector &detector_;
    KernelTable &kernels_;
    const KernelQuestions &questions_;
};

} // namespace tcuda::watch
