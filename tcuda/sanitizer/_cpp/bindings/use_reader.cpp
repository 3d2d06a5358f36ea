#include "sanitizer/_cpp/bindings/use_reader.hpp"

#include "bindings/python/owned.hpp"

namespace tcuda {
namespace {

bool fail(PyObject *use, const char *wrong) {
    PyErr_Format(PyExc_ValueError,
                 "an access is (address, itemsize, shape, strides, kind, label) or has a confidence as seventh item, "
                 "but %s: %R",
                 wrong, use);
    return false;
}

bool read_number(PyObject *number, long long *read) {
    *read = PyLong_AsLongLong(number);
    return *read != -1 || PyErr_Occurred() == nullptr;
}

bool read_address(PyObject *number, Address *read) {
    *read = static_cast<Address>(PyLong_AsUnsignedLongLongMask(number));
    return *read != ~Address(0) || PyErr_Occurred() == nullptr;
}

bool read_shape(PyObject *use, PyObject *counts, PyObject *strides, std::vector<races::Dimension> *shape) {
    if (!PyTuple_Check(counts) || !PyTuple_Check(strides) || PyTuple_Size(counts) != PyTuple_Size(strides))
        return fail(use, "its shape and its strides are no tuples of the same length");
    shape->clear();
    for (Py_ssize_t place = 0; place < PyTuple_Size(counts); ++place) {
        long long count, stride;
        if (!read_number(PyTuple_GetItem(counts, place), &count) ||
            !read_number(PyTuple_GetItem(strides, place), &stride))
            return false;
        shape->push_back({count, stride});
    }
    return true;
}

bool read_use(PyObject *use, races::RaceDetector::NamedUse *read) {
    thread_local std::vector<races::Dimension> shape;
    const Py_ssize_t size = PyTuple_Check(use) ? PyTuple_Size(use) : 0;
    if (size != 6 && size != 7)
        return fail(use, "it is no tuple of six or seven items");
    Address address;
    long long itemsize, kind;
    if (!read_address(PyTuple_GetItem(use, 0), &address) || !read_number(PyTuple_GetItem(use, 1), &itemsize) ||
        !read_shape(use, PyTuple_GetItem(use, 2), PyTuple_GetItem(use, 3), &shape) ||
        !read_number(PyTuple_GetItem(use, 4), &kind) || !read_text(PyTuple_GetItem(use, 5), "a label", &read->label))
        return false;
    if (itemsize < 0)
        return fail(use, "its itemsize is negative");
    if (kind < 1 || kind > 3)
        return fail(use, "its kind is neither 1 (read), 2 (write) nor 3 (both)");
    read->use.kind = static_cast<races::AccessKind>(kind);
    read->use.possible = false;
    if (size == 7) {
        std::string_view confidence;
        if (!read_text(PyTuple_GetItem(use, 6), "a confidence", &confidence))
            return false;
        read->use.possible = confidence == "possible";
        if (!read->use.possible && confidence != "exact")
            return fail(use, "its confidence is neither \"exact\" nor \"possible\"");
    }
    read->use.region.set(address, static_cast<std::size_t>(itemsize), shape);
    return true;
}

} // namespace

bool read_text(PyObject *text, const char *noun, std::string_view *read) {
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, but is %R", noun, text);
        return false;
    }
    Py_ssize_t size = 0;
    const char *const begin = PyUnicode_AsUTF8AndSize(text, &size);
    if (begin == nullptr)
        return false;
    *read = {begin, static_cast<std::size_t>(size)};
    return true;
}

bool read_uses(PyObject *tuple, std::vector<races::RaceDetector::NamedUse> *uses, std::size_t *count) {
    *count = static_cast<std::size_t>(PyTuple_Size(tuple));
    if (uses->size() < *count)
        uses->resize(*count);
    for (std::size_t place = 0; place < *count; ++place)
        if (!read_use(PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(place)), &(*uses)[place]))
            return false;
    return true;
}

bool read_uses(PyObject *tuple, std::vector<races::RaceDetector::NamedUse> *uses) {
    std::size_t count;
    uses->clear();
    return read_uses(tuple, uses, &count);
}

} // namespace tcuda
