#include "bindings/kernels/kernel_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/small_float.hpp"

namespace nb = nanobind;

namespace tcuda {
namespace {

// The result of an attempt to convert an argument.
enum class Outcome {
    packed,
    no_match,  // the argument is of another type
    too_large, // the number does not fit
    raised,    // a Python error is set
};

template <typename Number> Outcome stored(Number number, std::byte *target) {
    std::memcpy(target, &number, sizeof number);
    return Outcome::packed;
}

Outcome pack_bits(std::uint64_t bits, const Parameter &parameter, std::byte *target) {
    std::memcpy(target, &bits, parameter.size); // both hosts of CUDA, x86 and ARM, are little-endian
    return Outcome::packed;
}

Outcome pack_floating(double number, const Parameter &parameter, std::byte *target) {
    const bool finite = std::isfinite(number);
    if (parameter.kind == ParameterKind::bfloat16) {
        const std::uint16_t bits = bfloat16_bits(number);
        return finite && (bits & 0x7fff) == 0x7f80 ? Outcome::too_large : stored(bits, target);
    }
    if (parameter.size == 8)
        return stored(number, target);
    if (parameter.size == 4) {
        const auto single = static_cast<float>(number);
        return finite && !std::isfinite(single) ? Outcome::too_large : stored(single, target);
    }
    const std::uint16_t bits = half_bits(number);
    return finite && (bits & 0x7fff) == 0x7c00 ? Outcome::too_large : stored(bits, target);
}

bool fits_signed(long long number, std::uint32_t size) {
    const int unused = 64 - 8 * static_cast<int>(size);
    return number >= std::numeric_limits<long long>::min() >> unused &&
           number <= std::numeric_limits<long long>::max() >> unused;
}

bool fits_unsigned(std::uint64_t number, std::uint32_t size) {
    return number <= std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * size);
}

// Packs a Python int of any size.
Outcome pack_int(PyObject *number, const Parameter &parameter, std::byte *target) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (value == -1 && overflow == 0 && PyErr_Occurred())
        return Outcome::raised;
    switch (parameter.kind) {
    case ParameterKind::signed_integer:
        if (overflow != 0 || !fits_signed(value, parameter.size))
            return Outcome::too_large;
        return pack_bits(static_cast<std::uint64_t>(value), parameter, target);
    case ParameterKind::pointer:
    case ParameterKind::unsigned_integer: {
        if (overflow < 0 || (overflow == 0 && value < 0))
            return Outcome::too_large;
        auto bits = static_cast<std::uint64_t>(value);
        if (overflow > 0) {
            bits = PyLong_AsUnsignedLongLongMask(number);
            PyObject *const same = PyLong_FromUnsignedLongLong(bits);
            const int equal = same == nullptr ? -1 : PyObject_RichCompareBool(same, number, Py_EQ);
            Py_XDECREF(same);
            if (equal != 1)
                return equal == 0 ? Outcome::too_large : Outcome::raised;
        }
        return fits_unsigned(bits, parameter.size) ? pack_bits(bits, parameter, target) : Outcome::too_large;
    }
    case ParameterKind::boolean:
        return overflow == 0 && (value == 0 || value == 1) ? pack_bits(value, parameter, target) : Outcome::too_large;
    case ParameterKind::floating:
    case ParameterKind::bfloat16: {
        const double real = PyFloat_AsDouble(number);
        if (real == -1 && PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError))
                return Outcome::raised;
            PyErr_Clear();
            return Outcome::too_large;
        }
        return pack_floating(real, parameter, target);
    }
    default:
        return Outcome::no_match;
    }
}

// Packs a struct, or two reals of a complex number.
Outcome pack_complex(PyObject *number, const Parameter &parameter, std::byte *target) {
    const double parts[] = {PyComplex_RealAsDouble(number), PyComplex_ImagAsDouble(number)};
    if (parameter.size == sizeof parts) {
        std::memcpy(target, parts, sizeof parts);
        return Outcome::packed;
    }
    if (parameter.size != sizeof parts / 2)
        return Outcome::no_match;
    const Parameter part = {ParameterKind::floating, sizeof(float), 0};
    const Outcome first = pack_floating(parts[0], part, target);
    return first == Outcome::packed ? pack_floating(parts[1], part, target + sizeof(float)) : first;
}

// The kind of a number whose buffer has `format`. The kind of other formats is a struct.
ParameterKind kind_of(const char *format) {
    if (std::strchr("@=<", *format) != nullptr && *format != '\0')
        ++format;
    if (*format == '\0' || format[1] != '\0')
        return ParameterKind::structure;
    if (std::strchr("bhilqn", *format) != nullptr)
        return ParameterKind::signed_integer;
    if (std::strchr("BHILQN", *format) != nullptr)
        return ParameterKind::unsigned_integer;
    if (std::strchr("efd", *format) != nullptr)
        return ParameterKind::floating;
    if (*format == '?')
        return ParameterKind::boolean;
    return std::strchr("PzZ", *format) != nullptr ? ParameterKind::pointer : ParameterKind::structure;
}

bool is_integer(ParameterKind kind) {
    return kind == ParameterKind::signed_integer || kind == ParameterKind::unsigned_integer;
}

// Packs the bytes of a NumPy scalar, of a ctypes value or, for a struct, of any object with a buffer.
Outcome pack_buffer(PyObject *object, const Parameter &parameter, std::byte *target) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT | PyBUF_ND) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_BufferError) &&
            !PyErr_ExceptionMatches(PyExc_ValueError))
            return Outcome::raised;
        PyErr_Clear();
        return Outcome::no_match;
    }
    Outcome outcome = Outcome::no_match;
    if (view.len == static_cast<Py_ssize_t>(parameter.size)) {
        const ParameterKind kind = kind_of(view.format == nullptr ? "B" : view.format);
        const bool is_scalar = view.ndim == 0;
        if (parameter.kind == ParameterKind::structure || (is_scalar && kind == parameter.kind) ||
            (is_scalar && parameter.kind == ParameterKind::pointer && is_integer(kind))) {
            std::memcpy(target, view.buf, parameter.size);
            outcome = Outcome::packed;
        } else if (is_scalar && is_integer(kind) && is_integer(parameter.kind)) {
            // A number is the same in both types only if its highest bit is 0.
            const auto last = static_cast<const unsigned char *>(view.buf)[parameter.size - 1];
            std::memcpy(target, view.buf, parameter.size);
            outcome = last < 0x80 ? Outcome::packed : Outcome::too_large;
        }
    }
    PyBuffer_Release(&view);
    return outcome;
}

// Takes over `attribute`, a new reference or null. Returns null without an error if the object lacks the attribute.
PyObject *optional(PyObject *attribute, bool *raised) {
    if (attribute == nullptr) {
        *raised = !PyErr_ExceptionMatches(PyExc_AttributeError);
        if (!*raised)
            PyErr_Clear();
    }
    return attribute;
}

// Packs object.data.ptr or object.ptr.
Outcome pack_address(PyObject *object, const Parameter &parameter, std::byte *target) {
    bool raised = false;
    PyObject *const data = optional(PyObject_GetAttrString(object, "data"), &raised);
    PyObject *ptr = nullptr;
    if (data != nullptr) {
        ptr = optional(PyObject_GetAttrString(data, "ptr"), &raised);
        Py_DECREF(data);
    }
    if (!raised && ptr == nullptr)
        ptr = optional(PyObject_GetAttrString(object, "ptr"), &raised);
    if (ptr == nullptr)
        return raised ? Outcome::raised : Outcome::no_match;
    const Outcome outcome = PyLong_Check(ptr) ? pack_int(ptr, parameter, target) : Outcome::no_match;
    Py_DECREF(ptr);
    return outcome;
}

Outcome pack_other(PyObject *object, const Parameter &parameter, std::byte *target) {
    const Outcome outcome = pack_buffer(object, parameter, target);
    if (outcome != Outcome::no_match)
        return outcome;
    return parameter.kind == ParameterKind::pointer ? pack_address(object, parameter, target) : outcome;
}

// The types are tried in the order of their frequency.
Outcome pack_value(PyObject *object, const Parameter &parameter, std::byte *target) {
    if (PyLong_Check(object) && parameter.kind != ParameterKind::structure)
        return PyBool_Check(object) && parameter.kind == ParameterKind::pointer ? Outcome::no_match
                                                                                : pack_int(object, parameter, target);
    if (PyFloat_CheckExact(object)) {
        const bool is_floating = parameter.kind == ParameterKind::floating || parameter.kind == ParameterKind::bfloat16;
        return is_floating ? pack_floating(PyFloat_AsDouble(object), parameter, target) : Outcome::no_match;
    }
    if (object == Py_None && parameter.kind == ParameterKind::pointer)
        return pack_bits(0, parameter, target);
    if (PyComplex_CheckExact(object))
        return parameter.kind == ParameterKind::structure ? pack_complex(object, parameter, target) : Outcome::no_match;
    return pack_other(object, parameter, target);
}

const char *allowed_for(ParameterKind kind) {
    switch (kind) {
    case ParameterKind::pointer:
        return "an array on a device, an address, or None";
    case ParameterKind::signed_integer:
    case ParameterKind::unsigned_integer:
        return "an int, or a scalar of NumPy or ctypes of that size";
    case ParameterKind::floating:
    case ParameterKind::bfloat16:
        return "a float, an int, or a scalar of NumPy or ctypes of that size";
    case ParameterKind::boolean:
        return "a bool";
    default:
        return "a numpy.void, a ctypes.Structure or other bytes of that size, or a complex for two reals";
    }
}

void raise_mismatch(PyObject *name, std::size_t place, const Parameter &parameter, PyObject *object) {
    PyErr_Format(PyExc_TypeError, "argument %zu of kernel %U: the parameter is %s and takes %s; got an object of %R",
                 place + 1, name, type_of(parameter).c_str(), allowed_for(parameter.kind),
                 reinterpret_cast<PyObject *>(Py_TYPE(object)));
}

void raise_too_large(PyObject *name, std::size_t place, const Parameter &parameter, PyObject *object) {
    PyErr_Format(PyExc_OverflowError, "argument %zu of kernel %U: %R does not fit into the parameter, which is %s",
                 place + 1, name, object, type_of(parameter).c_str());
}

} // namespace

KernelParameters::KernelParameters(std::vector<Parameter> parameters, const ArrayAddresses *arrays)
    : parameters_(std::move(parameters)), arrays_(arrays) {
    for (const Parameter &parameter : parameters_)
        bytes_ = std::max(bytes_, std::size_t{parameter.offset} + parameter.size);
}

bool KernelParameters::pack(PyObject *name, PyObject *arguments, int device, std::byte *buffer) const {
    const auto given = static_cast<std::size_t>(PyTuple_Size(arguments));
    if (given != parameters_.size()) {
        PyErr_Format(PyExc_TypeError, "kernel %U takes %zu argument%s, but args has %zu", name, parameters_.size(),
                     parameters_.size() == 1 ? "" : "s", given);
        return false;
    }
    for (std::size_t place = 0; place < given; ++place) {
        const Parameter &parameter = parameters_[place];
        PyObject *const object = PyTuple_GetItem(arguments, static_cast<Py_ssize_t>(place));
        std::byte *const target = buffer + parameter.offset;
        if (parameter.kind == ParameterKind::pointer && arrays_ != nullptr && arrays_->has(object)) {
            std::uint64_t address = 0;
            if (!arrays_->find(object, device, &address))
                return false;
            pack_bits(address, parameter, target);
            continue;
        }
        switch (pack_value(object, parameter, target)) {
        case Outcome::packed:
            break;
        case Outcome::no_match:
            raise_mismatch(name, place, parameter, object);
            return false;
        case Outcome::too_large:
            raise_too_large(name, place, parameter, object);
            return false;
        case Outcome::raised:
            return false;
        }
    }
    return true;
}

} // namespace tcuda
