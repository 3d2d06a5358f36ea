#include "bindings/cpython_functions.hpp"

#include <dlfcn.h>

namespace tcuda {
namespace {

template <typename Function> void find(Function *&function, const char *name) {
    if (function == nullptr)
        function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

CpythonFunctions found() {
    CpythonFunctions functions{};
    find(functions.current_thread, "PyThreadState_GetUnchecked");
    find(functions.current_thread, "_PyThreadState_UncheckedGet"); // the name before Python 3.13
    find(functions.frame_back, "PyFrame_GetBack");
    find(functions.frame_instruction, "PyFrame_GetLasti");
    find(functions.code_line, "PyCode_Addr2Line");
    return functions;
}

} // namespace

const CpythonFunctions cpython = found();

} // namespace tcuda
