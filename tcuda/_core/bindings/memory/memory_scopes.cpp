// The part of the Python module for scopes of memory, whose names and nesting Python knows.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <string>
#include <utility>

#include "bindings/threads/cpython_functions.hpp"
#include "bindings/threads/python_lock.hpp"
#include "memory/records/scope.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The context variable, whose value is a tuple that begins with the innermost scope as a number.
std::atomic<PyObject *> variable{nullptr};

// The innermost scope as this thread has changed it last, for callers without Python's lock.
const Scope *&scope_of_thread() {
    static thread_local const Scope *scope = nullptr;
    return scope;
}

const Scope *scope_of(std::uintptr_t number) { return reinterpret_cast<const Scope *>(number); }

// Runs no Python code: the hash of a context variable is its own, and a context compares its keys by identity.
const Scope *innermost_scope() {
    if (!holds_python_lock())
        return scope_of_thread();
    PyObject *value = nullptr;
    if (cpython.context_get(variable.load(std::memory_order_relaxed), nullptr, &value) != 0 || value == nullptr)
        return nullptr;
    const auto number = PyLong_AsSize_t(PyTuple_GetItem(value, 0));
    Py_DECREF(value);
    return scope_of_thread() = scope_of(number);
}

std::uintptr_t new_scope(std::uintptr_t outer, std::size_t name, std::string path) {
    return reinterpret_cast<std::uintptr_t>(new Scope{scope_of(outer), name, std::move(path)});
}

void follow_scopes(nb::object context_variable, std::uintptr_t scope) {
    scope_of_thread() = scope_of(scope);
    if (variable.load(std::memory_order_relaxed) != nullptr || cpython.context_get == nullptr)
        return;
    variable = context_variable.release().ptr(); // lives until the end of the process
    CallerScope::connect(innermost_scope);
}

} // namespace

void bind_memory_scopes(nb::module_ &module) {
    module.def("new_scope", new_scope, nb::arg("outer"), nb::arg("name"), nb::arg("path"), R"(
    Make a scope of memory, which lives until the end of the process, and return its number.

    Args:
        outer: The scope around it; 0 for an outermost scope.
        name: The number of the name, which no outer scope has.
        path: The names from the outermost on, with dots between them.)");
    module.def("follow_scopes", follow_scopes, nb::arg("variable"), nb::arg("scope"),
               nb::sig("def follow_scopes(variable: ContextVar[tuple[int, Any]], scope: int) -> None"), R"(
    Let later allocations have the scope that ``variable`` names in the context of the allocation.

    Args:
        variable: Always the same variable. Its value is a tuple that begins with the number of the innermost scope; 0
            for no scope.
        scope: The innermost scope of the caller. The allocations of this thread that are made without Python's lock
            have this scope.)");
}

} // namespace tcuda
