// A kernel that cannot be followed: a large one, or one with a branch to anywhere.
#pragma once

namespace tcuda::kernel_uses {

struct CannotFollow {};

} // namespace tcuda::kernel_uses
