// What the mangled name of a kernel in C++ says about its parameters.
#pragma once

#include <string>
#include <vector>

#include "sanitizer/_cpp/kernel_uses/kernel_use.hpp"

namespace tcuda::kernel_uses {

// The name has the types of the parameters: the kernel only reads the memory of a pointer to const. The kernel is never
// complete, because a structure may have pointers too. `parameters` has the parameters of the kernel. The result has no
// pointers if the name is no mangled name, or does not fit the parameters.
KernelUse uses_of_mangled_name(const std::string &name, const std::vector<Parameter> &parameters);

} // namespace tcuda::kernel_uses
