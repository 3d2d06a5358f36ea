#include "bindings/threads/cpython_functions.hpp"

#include <dlfcn.h>

#include "bindings/python/python_calls.hpp"

namespace tcuda {
namespace {

#if PY_VERSION_HEX < 0x030B0000
// Python 3.10 has no function for the instruction of a frame.
int instruction_of_frame(PyObject *frame) {
    return static_cast<int>(taken_integer(PyObject_GetAttrString(frame, "f_lasti")));
}
#endif

template <typename Function> void find(Function *&function, const char *name) {
    if (function == nullptr)
        function = reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

CpythonFunctions found() {
    CpythonFunctions functions{};
    find(functions.current_thread, "PyThreadState_GetUnchecked");
    find(functions.current_thread, "_PyThreadState_UncheckedGet"); // the name before Python 3.13
    find(functions.frame_back, "PyFrame_GetBack");
#if PY_VERSION_HEX < 0x030B0000
    functions.frame_instruction = instruction_of_frame;
#else
    find(functions.frame_instruction, "PyFrame_GetLasti");
#endif
    find(functions.code_line, "PyCode_Addr2Line");
    find(functions.is_finalizing, "Py_IsFinalizing");
    find(functions.is_finalizing, "_Py_IsFinalizing"); // the name before Python 3.13
    find(functions.context_get, "PyContextVar_Get");
    return functions;
}

} // namespace

const CpythonFunctions cpython = found();

} // namespace tcuda
