"""The names of torch's tensors, functions and parameters that CuPy lacks, with what to write instead."""

from __future__ import annotations

from tcuda.emulation.names import catalogue

_CAST = "x.astype('{}') returns the elements in that type"
_NO_GRADIENTS = "CuPy computes no gradients, so that an array needs no such call"

_INSTEAD = {
    "backward": _NO_GRADIENTS,
    "bfloat16": _CAST.format("bfloat16"),
    "bool": _CAST.format("bool"),
    "byte": _CAST.format("uint8"),
    "clone": "x.copy() copies",
    "contiguous": "xp.ascontiguousarray(x) returns the elements in row-major order without gaps",
    "copy_": "x[...] = y writes the elements of y to x",
    "cpu": "x.get() copies to a NumPy array on the host",
    "cuda": "an array is on a device already, and xp.asarray(host) copies a NumPy array to the current device",
    "data_ptr": "x.data.ptr is the address",
    "detach": _NO_GRADIENTS,
    "dim": "x.ndim is the number of axes",
    "double": _CAST.format("float64"),
    "element_size": "x.itemsize is the size of an element in bytes",
    "expand": "xp.broadcast_to(x, shape) repeats the elements without a copy",
    "fill_": "x.fill(value) writes a value to each element",
    "float": _CAST.format("float32"),
    "get_device": "x.device.id is the index of the device",
    "grad": _NO_GRADIENTS,
    "half": _CAST.format("float16"),
    "int": _CAST.format("int32"),
    "is_contiguous": "x.flags.c_contiguous tells whether the elements lie in row-major order without gaps",
    "is_cuda": "every array is on a device, which x.device names",
    "long": _CAST.format("int64"),
    "new_empty": "xp.empty(shape, x.dtype) makes an array",
    "new_zeros": "xp.zeros(shape, x.dtype) makes an array",
    "numel": "x.size is the number of elements",
    "numpy": "x.get() copies to a NumPy array on the host",
    "permute": "x.transpose(axes) returns a view with its axes in another order",
    "pin_memory": "tcuda.memory.pin(host) locks the memory of a NumPy array, and tcuda.memory.empty_pinned() makes one",
    "record_stream": "tcuda.memory.record_stream(x, stream) notes the use",
    "requires_grad": _NO_GRADIENTS,
    "requires_grad_": _NO_GRADIENTS,
    "short": _CAST.format("int16"),
    "t": "x.T is the transpose",
    "to": "x.astype(dtype) changes the type, x.get() copies to the host, and xp.asarray(x) below "
    "`with tcuda.device(index):` copies to another device",
    "type": "x.dtype is the type of the elements, and x.astype(dtype) changes the type",
    "unsqueeze": "xp.expand_dims(x, axis) returns a view with one more axis",
    "zero_": "x.fill(0) writes 0 to each element",
}
"""What to write, by the name of torch. ``x`` is the array, and ``xp`` the array library."""


_FUNCTIONS = {
    "bmm": "matmul",
    "cat": "concatenate",
    "clamp": "clip",
    "from_numpy": "asarray",
    "manual_seed": "random.seed",
    "mm": "matmul",
    "numel": "size",
    "permute": "transpose",
    "rand": "random.rand",
    "randint": "random.randint",
    "randn": "random.randn",
    "randperm": "random.permutation",
    "tensor": "array",
    "unsqueeze": "expand_dims",
}
"""CuPy's functions, by the names of torch's."""

_KEYWORDS = {
    "device": "arrays are made on the current device: write the call below `with tcuda.device(1):`",
    "dim": "CuPy's name is axis",
    "dims": "CuPy's name is axis",
    "keepdim": "CuPy's name is keepdims",
    "non_blocking": "tcuda.memory.copy_async(target, source) copies without waiting",
    "pin_memory": "tcuda.memory.empty_pinned() makes an array in page-locked memory of the host",
    "requires_grad": _NO_GRADIENTS,
}
"""The advice for each parameter of torch."""

_OF_DEVICES = {
    "index": "tcuda.device_of(x).idx is the index of the device of the array x, and device.id that of this device",
    "type": "every array is on a CUDA device",
}
"""The advice for each attribute of torch's devices."""


def about_function(name: str) -> str:
    """Return which function of CuPy does what torch's function ``name`` does; an empty text if none is known."""
    function = _FUNCTIONS.get(name)
    return f". {name}() is a function of torch: write xp.{function}()." if function else ""


def about_keyword(name: str) -> str:
    """Return what to write in place of torch's parameter ``name``; an empty text for other names."""
    instead = _KEYWORDS.get(name)
    return f" {name} is a parameter of torch: {instead}." if instead else ""


def about_device(name: str) -> str:
    """Return what to write in place of the attribute ``name`` of torch's devices; an empty text for other names."""
    instead = _OF_DEVICES.get(name)
    return f". Devices are CuPy's, and not torch's: {instead}." if instead else ""


def about(name: str) -> str:
    """Return what to write in place of ``x.<name>``; an empty text for a name that torch's tensors lack too."""
    if name.startswith("_"):  # NumPy and other libraries ask for many of these names
        return ""
    instead = _INSTEAD.get(name) or _as_function(name)
    return f". Arrays are CuPy's, and no tensors of torch: {instead}." if instead else ""


def _as_function(name: str) -> str:
    """Return how to write ``name`` of a tensor as a function of the array library, such as ``sqrt`` or ``sqrt_``."""
    function = name.removesuffix("_")
    function = catalogue.ALIASES.get(function, function)
    if function in catalogue.UFUNCS:
        return f"xp.{function}() is a function" + (", and out=x writes to the array" if name.endswith("_") else "")
    if name in catalogue.COMPUTING or name in catalogue.VIEWS:
        return f"xp.{name}() is a function"
    return ""
