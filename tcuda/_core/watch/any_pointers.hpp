#pragma once

#include "watch/driver_questions.hpp"
#include "watch/launch_uses.hpp"

namespace tcuda::watch {

// Takes each 8-byte word of the parameters that points into live memory for a pointer through which the kernel may read
// and write the rest of the allocation.
class AnyPointers final : public LaunchUses {
public:
    AnyPointers(races::RaceDetector &detector, const DriverQuestions &questions)
        : detector_(detector), questions_(questions) {}

    NamedOperation uses_of(const Launch &launch) override;

private:
    races::RaceDetector &detector_;
    const DriverQuestions &questions_;
};

} // namespace tcuda::watch
