// The calls into Python that may end the thread. None of them unwinds the frames of the core or of nanobind.
//
// CMakeLists.txt reads the names below. With --wrap the linker replaces the calls of these functions in the whole
// module, nanobind included, by the functions here. Every function of Python that may take Python's lock, run Python
// code or collect garbage must be in this list. A function that may raise an exception belongs to them: the exception
// replaces another, whose end may run Python code. tests/core/bindings/threads/test_interpreter_calls.py has the list
// of the other functions that the core calls.
#include <Python.h>

#include <cstdarg>
#include <type_traits>

#include "threads/unwinding.hpp"

namespace {

template <typename Call> auto outlasting(Call call) {
    tcuda::Unwinding unwinding; // the thread holds no lock of the core: no function of Python is called under one
    if constexpr (std::is_void_v<decltype(call())>) {
        call();
        unwinding.dismiss();
    } else {
        const auto result = call();
        unwinding.dismiss();
        return result;
    }
}

} // namespace

#define GUARDED(Result, name, parameters, arguments)                                                                   \
    extern "C" decltype(name) __real_##name, __wrap_##name;                                                            \
    Result __wrap_##name parameters {                                                                                  \
        return outlasting([&] { return __real_##name arguments; });                                                    \
    }

// The same for a function with a variable number of arguments. `by_list` is a function that takes them as a list.
#define GUARDED_LIST(Result, name, by_list, parameters, arguments, last)                                               \
    extern "C" decltype(name) __wrap_##name;                                                                           \
    Result __wrap_##name parameters {                                                                                  \
        va_list values;                                                                                                \
        va_start(values, last);                                                                                        \
        const Result result = outlasting([&] { return by_list arguments; });                                           \
        va_end(values);                                                                                                \
        return result;                                                                                                 \
    }

using Object = PyObject *;
using ConstObjects = PyObject *const *;

namespace {

// Python has no such function with a list.
Object pack_by_list(Py_ssize_t count, va_list items) {
    Object tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; tuple != nullptr && index < count; ++index) {
        Object item = va_arg(items, Object);
        Py_INCREF(item);
        PyTuple_SetItem(tuple, index, item);
    }
    return tuple;
}

int warn_by_list(Object category, Py_ssize_t level, const char *format, va_list values) {
    Object text = PyUnicode_FromFormatV(format, values);
    const char *const characters = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, nullptr);
    const int result = characters == nullptr ? -1 : PyErr_WarnEx(category, characters, level);
    Py_XDECREF(text);
    return result;
}

} // namespace

// Python's lock
GUARDED(void, PyEval_RestoreThread, (PyThreadState * state), (state))
GUARDED(PyGILState_STATE, PyGILState_Ensure, (), ())
GUARDED(void, PyGILState_Release, (PyGILState_STATE state), (state))
#ifdef Py_GIL_DISABLED // a thread that waits for one of these locks asks Python for leave to go on
GUARDED(void, PyMutex_Lock, (PyMutex * mutex), (mutex))
GUARDED(void, PyCriticalSection_Begin, (PyCriticalSection * section, Object object), (section, object))
GUARDED(void, PyCriticalSection2_Begin, (PyCriticalSection2 * section, Object a, Object b), (section, a, b))
#endif

// The lives of objects
GUARDED(void, _Py_DecRef, (Object object), (object))
GUARDED(void, _Py_Dealloc, (Object object), (object))
#ifdef Py_GIL_DISABLED
GUARDED(void, _Py_DecRefShared, (Object object), (object))
GUARDED(void, _Py_MergeZeroLocalRefcount, (Object object), (object))
#endif
GUARDED(void, PyObject_ClearWeakRefs, (Object object), (object))
GUARDED(Object, _PyObject_GC_New, (PyTypeObject * type), (type))
GUARDED(Object, PyType_GenericAlloc, (PyTypeObject * type, Py_ssize_t count), (type, count))
GUARDED(Object, PyType_GenericNew, (PyTypeObject * type, Object args, Object names), (type, args, names))
GUARDED(Object, PyDict_New, (), ())
GUARDED(Object, PyList_New, (Py_ssize_t size), (size))
GUARDED(Object, PyTuple_New, (Py_ssize_t size), (size))
GUARDED(Object, PyList_AsTuple, (Object list), (list))
GUARDED_LIST(Object, PyTuple_Pack, pack_by_list, (Py_ssize_t count, ...), (count, values), count)
GUARDED(Object, PyThreadState_GetDict, (), ())
GUARDED(Object, PyInterpreterState_GetDict, (PyInterpreterState * interpreter), (interpreter))
GUARDED(Object, PyObject_GenericGetDict, (Object object, void *context), (object, context))
GUARDED(int, PyObject_GenericSetDict, (Object object, Object value, void *context), (object, value, context))
#if PY_VERSION_HEX < 0x030C0000 // later versions use no contexts of their own: quiet_calls.hpp says why
GUARDED(Object, PyContext_CopyCurrent, (), ())
GUARDED(int, PyContext_Exit, (Object context), (context))
#endif
GUARDED(Object, PyWeakref_NewRef, (Object object, Object callback), (object, callback))
GUARDED(Object, Py_GenericAlias, (Object origin, Object args), (origin, args))
GUARDED(Object, PyCMethod_New, (PyMethodDef * method, Object self, Object module, PyTypeObject *type),
        (method, self, module, type))
GUARDED(Object, PyType_FromSpec, (PyType_Spec * spec), (spec))
#if PY_VERSION_HEX >= 0x030C0000
GUARDED(Object, PyType_FromMetaclass, (PyTypeObject * type, Object module, PyType_Spec *spec, Object bases),
        (type, module, spec, bases))
#endif
GUARDED(int, PyType_Ready, (PyTypeObject * type), (type))
GUARDED(PyFrameObject *, PyEval_GetFrame, (), ())
GUARDED(PyFrameObject *, PyThreadState_GetFrame, (PyThreadState * thread), (thread))
#ifndef Py_LIMITED_API
GUARDED(PyFrameObject *, PyFrame_GetBack, (PyFrameObject * frame), (frame))
#endif
GUARDED(Object, PyModule_NewObject, (Object name), (name))
GUARDED(int, PyModule_AddObjectRef, (Object module, const char *name, Object value), (module, name, value))
GUARDED(const char *, PyModule_GetName, (Object module), (module))
GUARDED(Object, PyCapsule_New, (void *pointer, const char *name, PyCapsule_Destructor destroy),
        (pointer, name, destroy))

// Calls
#if PY_VERSION_HEX >= 0x030B0000
GUARDED(Object, PyObject_Vectorcall, (Object callable, ConstObjects args, size_t count, Object names),
        (callable, args, count, names))
#else // vectorcall.hpp says why
#undef PyObject_Vectorcall
extern "C" Object tcuda_vectorcall(Object callable, ConstObjects args, size_t count, Object names) {
    return outlasting([&] { return PyObject_Vectorcall(callable, args, count, names); });
}
#endif
GUARDED(Object, PyObject_VectorcallMethod, (Object name, ConstObjects args, size_t count, Object names),
        (name, args, count, names))
GUARDED(Object, PyObject_Call, (Object callable, Object args, Object names), (callable, args, names))
GUARDED(Object, PyVectorcall_Call, (Object callable, Object args, Object names), (callable, args, names))
GUARDED(Object, PyEval_EvalCode, (Object code, Object globals, Object locals), (code, globals, locals))
GUARDED(Object, PyImport_ImportModule, (const char *name), (name))
GUARDED(Object, PyImport_AddModule, (const char *name), (name))
#ifdef Py_LIMITED_API
GUARDED(Object, Py_CompileString, (const char *text, const char *file, int start), (text, file, start))
#else
GUARDED(Object, Py_CompileStringExFlags,
        (const char *text, const char *file, int start, PyCompilerFlags *flags, int optimize),
        (text, file, start, flags, optimize))
#endif

// Calls that run the methods of an object's type
GUARDED(Object, PyObject_GetAttr, (Object object, Object name), (object, name))
GUARDED(Object, PyObject_GetAttrString, (Object object, const char *name), (object, name))
#ifndef Py_LIMITED_API
#if PY_VERSION_HEX < 0x030D0000
GUARDED(int, _PyObject_LookupAttr, (Object object, Object name, Object *value), (object, name, value))
GUARDED(Object, _PyType_Lookup, (PyTypeObject * type, Object name), (type, name))
#else
GUARDED(int, PyObject_GetOptionalAttr, (Object object, Object name, Object *value), (object, name, value))
GUARDED(Object, _PyType_LookupRef, (PyTypeObject * type, Object name), (type, name))
#endif
#endif
GUARDED(int, PyObject_HasAttr, (Object object, Object name), (object, name))
GUARDED(int, PyObject_SetAttr, (Object object, Object name, Object value), (object, name, value))
GUARDED(int, PyObject_SetAttrString, (Object object, const char *name, Object value), (object, name, value))
GUARDED(int, PyObject_SetItem, (Object object, Object key, Object value), (object, key, value))
GUARDED(Object, PyObject_GenericGetAttr, (Object object, Object name), (object, name))
GUARDED(Object, PyObject_GetItem, (Object object, Object key), (object, key))
GUARDED(Object, PyObject_Repr, (Object object), (object))
GUARDED(Object, PyObject_Str, (Object object), (object))
GUARDED(int, PyObject_RichCompareBool, (Object left, Object right, int operation), (left, right, operation))
GUARDED(int, PyObject_IsInstance, (Object object, Object type), (object, type))
GUARDED(int, PyObject_IsTrue, (Object object), (object))
GUARDED(int, PyObject_IsSubclass, (Object object, Object type), (object, type))
GUARDED(int, PyObject_GetBuffer, (Object object, Py_buffer *view, int flags), (object, view, flags))
GUARDED(void, PyBuffer_Release, (Py_buffer * view), (view))
GUARDED(int, PyBuffer_FillInfo,
        (Py_buffer * view, Object object, void *memory, Py_ssize_t size, int readonly, int flags),
        (view, object, memory, size, readonly, flags))
GUARDED(Object, PyNumber_Add, (Object left, Object right), (left, right))
GUARDED(Object, PyNumber_InPlaceOr, (Object left, Object right), (left, right))
GUARDED(Object, PyNumber_Index, (Object object), (object))
GUARDED(Object, PyNumber_Long, (Object object), (object))
GUARDED(Object, PyNumber_Lshift, (Object left, Object right), (left, right))
GUARDED(Object, PyNumber_Subtract, (Object left, Object right), (left, right))
GUARDED(double, PyFloat_AsDouble, (Object object), (object))
GUARDED(double, PyComplex_RealAsDouble, (Object object), (object))
GUARDED(double, PyComplex_ImagAsDouble, (Object object), (object))
GUARDED(long, PyLong_AsLong, (Object object), (object))
GUARDED(size_t, PyLong_AsSize_t, (Object object), (object))
GUARDED(Py_ssize_t, PyLong_AsSsize_t, (Object object), (object))
GUARDED(long long, PyLong_AsLongLong, (Object object), (object))
GUARDED(long long, PyLong_AsLongLongAndOverflow, (Object object, int *overflow), (object, overflow))
GUARDED(unsigned long long, PyLong_AsUnsignedLongLong, (Object object), (object))
GUARDED(unsigned long long, PyLong_AsUnsignedLongLongMask, (Object object), (object))
GUARDED(Object, PyObject_GetIter, (Object object), (object))
GUARDED(Object, PyIter_Next, (Object iterator), (iterator))
GUARDED(Py_ssize_t, PyObject_Size, (Object object), (object))
GUARDED(Object, PySequence_GetItem, (Object object, Py_ssize_t index), (object, index))
GUARDED(Py_ssize_t, PySequence_Size, (Object object), (object))
GUARDED(Object, PySequence_List, (Object sequence), (sequence))
GUARDED(Object, PySequence_Tuple, (Object object), (object))
GUARDED(Object, PySlice_New, (Object begin, Object end, Object step), (begin, end, step))
GUARDED(int, PyDict_Contains, (Object dict, Object key), (dict, key))
GUARDED(Object, PyDict_GetItem, (Object dict, Object key), (dict, key))
GUARDED(Object, PyDict_GetItemWithError, (Object dict, Object key), (dict, key))
GUARDED(int, PyDict_SetItem, (Object dict, Object key, Object value), (dict, key, value))
GUARDED(int, PyDict_SetItemString, (Object dict, const char *key, Object value), (dict, key, value))
GUARDED(int, PyDict_Update, (Object dict, Object other), (dict, other))
#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_LIMITED_API)
GUARDED(int, PyDict_GetItemRef, (Object dict, Object key, Object *value), (dict, key, value))
GUARDED(int, PyDict_SetDefaultRef, (Object dict, Object key, Object value, Object *found), (dict, key, value, found))
#endif
GUARDED(Object, PyMapping_Items, (Object mapping), (mapping))
GUARDED(int, PyList_Append, (Object list, Object item), (list, item))
GUARDED(int, PyList_SetItem, (Object list, Py_ssize_t index, Object item), (list, index, item))

// Conversions that raise an exception for a wrong argument
GUARDED(int, PyArg_VaParse, (Object args, const char *format, va_list values), (args, format, values))
GUARDED_LIST(int, PyArg_ParseTuple, PyArg_VaParse, (Object args, const char *format, ...), (args, format, values),
             format)
GUARDED(const char *, PyCapsule_GetName, (Object capsule), (capsule))
GUARDED(void *, PyCapsule_GetPointer, (Object capsule, const char *name), (capsule, name))
GUARDED(Object, PyUnicode_FromString, (const char *text), (text))
GUARDED(Object, PyUnicode_FromStringAndSize, (const char *text, Py_ssize_t size), (text, size))
GUARDED(const char *, PyUnicode_AsUTF8AndSize, (Object text, Py_ssize_t *size), (text, size))
GUARDED(Object, PyUnicode_FromFormatV, (const char *format, va_list values), (format, values))
GUARDED_LIST(Object, PyUnicode_FromFormat, PyUnicode_FromFormatV, (const char *format, ...), (format, values), format)
GUARDED(Object, Py_VaBuildValue, (const char *format, va_list values), (format, values))
GUARDED_LIST(Object, Py_BuildValue, Py_VaBuildValue, (const char *format, ...), (format, values), format)

// Garbage
GUARDED(Py_ssize_t, PyGC_Collect, (), ())

// Exceptions
GUARDED(int, PyErr_CheckSignals, (), ())
GUARDED(void, PyErr_Clear, (), ())
GUARDED(int, PyErr_ExceptionMatches, (Object type), (type))
GUARDED(int, PyErr_GivenExceptionMatches, (Object error, Object type), (error, type))
GUARDED(Object, PyErr_NoMemory, (), ())
GUARDED(void, PyErr_SetString, (Object type, const char *text), (type, text))
#if PY_VERSION_HEX >= 0x030C0000
GUARDED(void, PyErr_SetRaisedException, (Object error), (error))
#else
GUARDED(void, PyErr_Restore, (Object type, Object value, Object traceback), (type, value, traceback))
GUARDED(void, PyErr_NormalizeException, (Object * type, Object *value, Object *traceback), (type, value, traceback))
#endif
GUARDED(void, PyErr_WriteUnraisable, (Object object), (object))
GUARDED(void, PyException_SetCause, (Object error, Object cause), (error, cause))
GUARDED(void, PyException_SetContext, (Object error, Object context), (error, context))
GUARDED(int, PyException_SetTraceback, (Object error, Object traceback), (error, traceback))
GUARDED(int, PyThreadState_SetAsyncExc, (unsigned long thread, Object error), (thread, error))
GUARDED(int, PyErr_WarnEx, (Object category, const char *text, Py_ssize_t level), (category, text, level))
GUARDED_LIST(int, PyErr_WarnFormat, warn_by_list, (Object category, Py_ssize_t level, const char *format, ...),
             (category, level, format, values), format)
GUARDED(Object, PyErr_FormatV, (Object type, const char *format, va_list values), (type, format, values))
GUARDED_LIST(Object, PyErr_Format, PyErr_FormatV, (Object type, const char *format, ...), (type, format, values),
             format)
