"""The functions of Python that the core calls: a guard is round each that may end the thread."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tcuda._core
from support.folders import REPOSITORY

GUARDS = REPOSITORY / "tcuda" / "_core" / "bindings" / "threads" / "interpreter_calls.cpp"
_GUARD = re.compile(r"^GUARDED[A-Z_]*\([^,]*, (\w+),", re.MULTILINE)  # as in CMakeLists.txt

_DATA = re.compile(r"PyExc_\w+|_?Py\w+_?Type|_PyWeakref_RefType|_Py_\w+Struct|Py_Version")
"""Types, exceptions and constants of Python, which nobody calls."""

HARMLESS = {
    "reads a member or a slot of an object, of the right type by an earlier check": """
        PyBytes_AsString PyBytes_Size PyCallable_Check PyCapsule_GetContext PyDict_Size PyException_GetContext
        PyException_GetTraceback PyFrame_GetCode PyFrame_GetLineNumber PyIndex_Check PyList_GetItem PyList_GetItemRef
        PyList_Size PyMapping_Check PyModule_GetDef PyModule_GetDict PyModule_GetState PyObject_GetTypeData
        PyObject_IS_GC PyObject_CheckBuffer PySequence_Check PyTuple_GetItem PyTuple_Size PyType_GetDict PyType_GetFlags
        PyType_GetModuleName PyType_GetName PyType_GetSlot PyType_IsSubtype PyVectorcall_NARGS PyWeakref_GetObject
        PyWeakref_GetRef""",
    "reads the state of the interpreter or of the thread": """
        PyErr_Occurred PyGILState_GetThisThreadState PyInterpreterState_Get PyThread_get_thread_ident Py_IsInitialized
        PyThreadState_GetUnchecked""",
    "allocates or frees memory that the garbage collector does not count, and may only lack memory": """
        PyBytes_FromStringAndSize PyFloat_FromDouble PyLong_FromLong PyLong_FromLongLong PyLong_FromSize_t
        PyLong_FromSsize_t PyLong_FromUnsignedLong PyLong_FromUnsignedLongLong PyMem_Calloc PyMem_Free PyMem_Malloc
        PyMem_Realloc PyObject_Free PyObject_GC_Del PyObject_Malloc PyObject_Realloc PyObject_Init _PyObject_New""",
    "changes the count or the place of an object in the lists of the garbage collector, or switches the collector": """
        PyGC_Disable PyGC_Enable PyObject_GC_Track PyObject_GC_UnTrack PyUnstable_EnableTryIncRef PyUnstable_TryIncRef
        Py_IncRef Py_NewRef Py_XNewRef _Py_IncRef _Py_NewReference""",
    "moves an exception, and drops none": "PyErr_Fetch PyErr_GetRaisedException",
    "fills an empty place, where no earlier object is dropped": "PyCapsule_SetContext PyTuple_SetItem",
    "compares or keeps strings of Python's own type": """
        PyUnicode_Compare PyUnicode_InternFromString PyUnicode_InternInPlace""",
    "gives the items of a dict without a comparison": "PyDict_Next",
    "enters a context that nobody else knows": "PyContext_Enter",
    "gives Python's lock back, or a lock that only guards a few instructions": """
        PyCriticalSection2_End PyCriticalSection_End PyEval_SaveThread PyMutex_Unlock""",
    "makes a note for later, under a lock of its own that guards a few instructions": "Py_AddPendingCall Py_AtExit",
    "begins the import of the core": "PyModuleDef_Init",
    "words an error for nanobind, and has no form that a wrapper can call": """
        PyErr_FormatUnraisable PyObject_CallMethod""",
}
"""The functions that neither take Python's lock, nor run Python code, nor collect garbage, by the reason."""


def functions() -> set[str]:
    """Return the names of Python that the library of the core imports, without data."""
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm of the binutils, which lists the symbols of a library")
    library = str(Path(tcuda._core.__file__))
    done = subprocess.run([nm, "-D", "--undefined-only", library], check=True, capture_output=True, text=True)
    names = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    return {name for name in names if re.match("_?Py", name) and not _DATA.fullmatch(name)}


def guarded() -> set[str]:
    return set(_GUARD.findall(GUARDS.read_text()))


def harmless() -> set[str]:
    return {name for names in HARMLESS.values() for name in names.split()}


def test_each_function_of_python_has_a_guard_or_is_harmless() -> None:
    unknown = functions() - guarded() - harmless()
    assert not unknown, f"add these to {GUARDS.name}, or to the list above with a reason"


def test_no_function_is_in_both_lists() -> None:
    assert not guarded() & harmless()


def test_the_core_calls_guarded_functions() -> None:
    assert {"PyEval_RestoreThread", "PyObject_Vectorcall", "PyUnicode_AsUTF8AndSize"} <= functions() & guarded()
