"""The translation of a function in Python into a kernel in CUDA C++."""

from __future__ import annotations

import ast
import inspect
import linecache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tcuda.emulation.arrays.ufunc import ufunc
from tcuda.emulation.cupyx.jit import functions, indexing, operations
from tcuda.emulation.cupyx.jit.types import VOID, Scalar, Tuple, Type, type_of_form
from tcuda.emulation.cupyx.jit.values import (
    NUMBERS,
    Code,
    Constant,
    Intrinsic,
    Items,
    Value,
    cast,
    code_of,
    converted,
    truth,
)
from tcuda.emulation.kernels.parts import generated_source
from tcuda.emulation.kernels.parts.parameters import Parameter
from tcuda.emulation.rtc import headers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_FUNCTIONS = 100
_HEADER = "tcuda/jit.h"
_CASTS = (bool, int, float, complex, np.generic)


class Program:
    """The source of a kernel and of the functions that the kernel calls.

    Args:
        mode: The rules for the types of numbers, ``"cuda"`` or ``"numpy"``.

    Attributes:
        mode: The rules for the types of numbers.
        cooperative: Whether the blocks of a launch have to run at the same time.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.cooperative = False
        self._headers = [_HEADER]
        self._found: dict[tuple[Callable[..., Any], tuple[Type, ...]], tuple[str, Type] | None] = {}
        self._texts: list[str] = []

    def include(self, header: str) -> None:
        """Let the source include ``header``."""
        if header not in self._headers:
            self._headers.append(header)

    def kernel(self, function: Callable[..., Any], forms: Sequence[generated_source.Form]) -> str:
        """Return the source of the kernel ``function``, whose name in the source is that of ``name_of``.

        Args:
            function: The function.
            forms: The forms of the arguments.

        Raises:
            Exception: The function uses something that kernels do not have. The message has the line.
        """
        body = _Body(self, function, [type_of_form(form) for form in forms], VOID)
        params = [
            Parameter(name, form.dtype, "", raw=True, is_const=False)
            for name, form in zip(body.parameters, forms, strict=True)
        ]
        head = generated_source.head_of(params, forms, [])
        lines = body.translated()
        includes = "".join(f"#include <{header}>\n" for header in self._headers)
        return "\n".join(
            [
                f"{headers.CUPY}{includes}{head.declarations}{''.join(self._texts)}",
                f'extern "C" __global__ void {body.name}({head.parameters}) {{',
                head.variables,
                *body.declarations(),
                *lines,
                "}\n",
            ]
        )

    def add(self, function: Callable[..., Any], types: tuple[Type, ...]) -> tuple[str, Type]:
        """Translate a function for the device, and return its name in the source and the type of its result.

        Raises:
            ValueError: The function calls itself, or there are too many functions.
        """
        key = (function, types)
        if key in self._found:
            known = self._found[key]
            if known is None:
                raise ValueError("Recursive function is not supported.")
            return known
        if len(self._found) >= _MOST_FUNCTIONS:
            raise ValueError(f"Number of functions exceeds upper limit: {_MOST_FUNCTIONS}.")
        self._found[key] = None
        body = _Body(self, function, types, None)
        name = f"{body.name}_{len(self._found)}"
        lines = body.translated()
        result = body.result or VOID
        listed = ", ".join(f"{kind} {each}" for each, kind in zip(body.parameters, types, strict=True))
        text = [f"__device__ {result} {name}({listed}) {{", *body.declarations(), *lines, "}\n"]
        self._texts.append("\n".join(text))
        self._found[key] = name, result
        return name, result


class _Body:
    """A function that is being translated. The class is a ``Scope``.

    Args:
        program: The source.
        function: The function.
        types: The types of the parameters.
        result: The type of the result; None if the first return statement decides.

    Attributes:
        parameters: The names of the parameters.
        result: The type of the result; None before the first return statement with a value.
    """

    def __init__(
        self, program: Program, function: Callable[..., Any], types: Sequence[Type], result: Type | None
    ) -> None:
        self._program = program
        self._tree, self._file, self._lines, self._first = _parsed(function)
        known = inspect.getclosurevars(function)
        self._constants = {
            name: Constant(value) for name, value in {**known.builtins, **known.globals, **known.nonlocals}.items()
        }
        self.parameters = _parameters(self._tree)
        if len(self.parameters) != len(types):
            raise TypeError(
                f"{self._tree.name}() takes {len(self.parameters)} positional arguments but {len(types)} were given."
            )
        self._variables = {name: Code(name, kind) for name, kind in zip(self.parameters, types, strict=True)}
        self._declared: list[str] = []
        self._depth = 0
        self._target = "shared"
        """The variable that gets the value that is being translated; reports about shared memory show its name."""
        self._count = 0
        self.result = result

    @property
    def name(self) -> str:
        """The name of the function in C++."""
        return self._tree.name

    @property
    def mode(self) -> str:
        """The rules for the types of numbers."""
        return self._program.mode

    def include(self, header: str) -> None:
        """Let the source include ``header``."""
        self._program.include(header)

    def launch_cooperatively(self) -> None:
        """Let the blocks of a launch run at the same time."""
        self._program.cooperative = True

    def add_function(self, function: Callable[..., Any], types: tuple[Type, ...]) -> tuple[str, Type]:
        """Translate a function for the device, and return its name and the type of its result."""
        return self._program.add(function, types)

    def declare_shared(self, element: Type, size: int | None, alignment: int | None) -> str:
        """Declare an array in shared memory, and return its name."""
        name = self._fresh(f"{self._target}_")
        aligned = "" if alignment is None else f"__align__({alignment}) "
        if size is None:
            self._declared.append(f"extern {aligned}__shared__ {element} {name}[];")
        else:
            self._declared.append(f"{aligned}__shared__ {element} {name}[{size}];")
        return name

    def declarations(self) -> list[str]:
        """Return the declarations of the variables."""
        return self._declared

    def translated(self) -> list[str]:
        """Return the statements of the body.

        Raises:
            Exception: The function uses something that kernels do not have. The message has the line.
        """
        return self._statements(self._tree.body)

    def _statements(self, statements: Sequence[ast.stmt]) -> list[str]:
        lines: list[str] = []
        for statement in statements:
            made = self._translated(statement)
            if made:
                lines += [f'#line {self._first + statement.lineno - 1} "{self._file}"', *made]
        return lines

    def _inner(self, statements: Sequence[ast.stmt]) -> list[str]:
        self._depth += 1
        try:
            return self._statements(statements)
        finally:
            self._depth -= 1

    def _translated(self, statement: ast.stmt) -> list[str]:
        translate = getattr(self, f"_{type(statement).__name__.lower()}", None)
        try:
            if translate is None:
                _refuse(statement)
            made: list[str] = translate(statement)
        except Exception as error:
            self._say_where(error, statement)
            raise
        return made

    def _say_where(self, error: Exception, statement: ast.stmt) -> None:
        """Add the line of the program to the message of an error, unless an inner statement has done so."""
        if getattr(error, "_tcuda_line", False) or len(error.args) != 1 or not isinstance(error.args[0], str):
            return
        number = self._first + statement.lineno - 1
        text = self._lines[statement.lineno - 1].strip()
        error.args = (f'{error.args[0]}\n\n  File "{self._file}", line {number}, in {self._tree.name}\n    {text}',)
        error._tcuda_line = True  # type: ignore[attr-defined]

    # Statements

    def _pass(self, statement: ast.Pass) -> list[str]:
        return [";"]

    def _break(self, statement: ast.Break) -> list[str]:
        return ["break;"]

    def _continue(self, statement: ast.Continue) -> list[str]:
        return ["continue;"]

    def _expr(self, statement: ast.Expr) -> list[str]:
        value = self._value(statement.value)
        return [f"{value.text};"] if isinstance(value, Code) else []

    def _assert(self, statement: ast.Assert) -> list[str]:
        value = self._value(statement.test)
        if isinstance(value, Constant):
            assert value.value
            return []
        return [f"assert({truth(value, self.mode).text});"]

    def _return(self, statement: ast.Return) -> list[str]:
        value = Constant(None) if statement.value is None else self._value(statement.value)
        if isinstance(value, Constant) and value.value is None:
            return ["return;"]
        code = code_of(value, self.mode)
        if self.result is None:
            self.result = code.type
        elif self.result != code.type:
            raise ValueError(f"Failed to infer the return type: {self.result} or {code.type}")
        return [f"return {code.text};"]

    def _if(self, statement: ast.If) -> list[str]:
        condition = self._value(statement.test)
        if isinstance(condition, Constant):
            return self._statements(statement.body if condition.value else statement.orelse)
        lines = [f"if ({truth(condition, self.mode).text}) {{", *self._inner(statement.body), "}"]
        return [*lines, "else {", *self._inner(statement.orelse), "}"] if statement.orelse else lines

    def _while(self, statement: ast.While) -> list[str]:
        if statement.orelse:
            raise NotImplementedError("while-else is not supported.")
        condition = truth(self._value(statement.test), self.mode)
        return [f"while ({condition.text}) {{", *self._inner(statement.body), "}"]

    def _for(self, statement: ast.For) -> list[str]:
        if statement.orelse:
            raise NotImplementedError("for-else is not supported.")
        if not isinstance(statement.target, ast.Name):
            raise NotImplementedError("The target of a for loop must be a name.")
        numbers = self._range(statement.iter)
        name, kind = statement.target.id, numbers.type
        known = self._variables.get(name)
        if known is None:
            self._declare(name, kind)
        elif known.type != kind:
            raise TypeError(f"Data type mismatch of variable: `{name}`: {known.type} != {kind}")
        number, last, step = (self._fresh(f"_{word}_") for word in ("it", "stop", "step"))
        condition = {
            True: f"{number} < {last}",
            False: f"{number} > {last}",
            None: f"{step} >= 0 ? {number} < {last} : {number} > {last}",
        }[numbers.up]
        first, stop, distance = (converted(each, kind).text for each in (numbers.start, numbers.stop, numbers.step))
        head = f"{kind} {number} = {first}, {last} = {stop}, {step} = {distance}"
        lines = [f"for ({head}; {condition}; {number} += {step}) {{", f"{name} = {number};"]
        lines += [*self._inner(statement.body), "}"]
        if numbers.unroll is None:
            return lines
        return ["#pragma unroll" if numbers.unroll is True else f"#pragma unroll({numbers.unroll})", *lines]

    def _range(self, iterator: ast.expr) -> functions.Range:
        if isinstance(iterator, ast.Call):
            called = self._value(iterator.func)
            if isinstance(called, Constant) and any(called.value is each for each in functions.RANGES):
                args, kwargs = self._arguments(iterator)
                if called.value is range and kwargs:
                    raise TypeError("range() takes no keyword arguments; jit.range() takes unroll.")
                return functions.range_of(self, *args, **kwargs)
        raise NotImplementedError("for-loop is supported only for range iterator.")

    def _assign(self, statement: ast.Assign) -> list[str]:
        if len(statement.targets) != 1:
            raise NotImplementedError("An assignment to several targets is not supported.")
        target = statement.targets[0]
        self._target = target.id if isinstance(target, ast.Name) else "shared"
        value = self._value(statement.value)
        if isinstance(value, Constant) and isinstance(target, ast.Name) and not isinstance(value.value, NUMBERS):
            if self._depth:
                raise TypeError("Cannot assign constant value not at top-level.")
            if target.id in self._variables:
                raise TypeError(f"Type mismatch of variable: `{target.id}`")
            self._constants[target.id] = value
            return []
        return self._assigned(target, value)

    def _annassign(self, statement: ast.AnnAssign) -> list[str]:
        if statement.value is None:
            return []
        return self._assigned(statement.target, self._value(statement.value))

    def _assigned(self, target: ast.expr, value: Value) -> list[str]:
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._unpacked(target.elts, value)
        code = code_of(value, self.mode)
        if isinstance(target, ast.Name):
            if target.id not in self._variables:
                self._declare(target.id, code.type)
            place: Value = self._variables[target.id]
        else:
            place = self._value(target)
        if not isinstance(place, Code):
            raise TypeError("lvalue of assignment must not be constant value")
        return [f"{place.text} = {self._fitting(value, place).text};"]

    def _fitting(self, value: Value, place: Code) -> Code:
        """Return ``value`` with the type of the place that gets the value."""
        if isinstance(place.type, Scalar):
            if isinstance(value, Constant):
                value = code_of(value, self.mode)
            return cast(value, place.type, "same_kind", self.mode)
        code = code_of(value, self.mode)
        if code.type != place.type:
            raise TypeError(f"Data type mismatch of variable: `{place.text}`: {place.type} != {code.type}")
        return code

    def _unpacked(self, targets: Sequence[ast.expr], value: Value) -> list[str]:
        if isinstance(value, Code) and not isinstance(value.type, Tuple):
            raise ValueError(f"{value.type} cannot be unpacked")
        lines: list[str] = []
        if isinstance(value, Code):  # The expression is computed once.
            name = self._fresh("_items_")
            lines.append(f"{value.type} {name} = {value.text};")
            value = Code(name, value.type)
        items = indexing.items_of(value)
        if len(items) != len(targets):
            few = "too many" if len(items) > len(targets) else "not enough"
            raise ValueError(f"{few} values to unpack (expected {len(targets)})")
        # All items are computed before the first assignment.
        held: list[Value] = []
        for item in items:
            code = code_of(item, self.mode)
            name = self._fresh("_item_")
            lines.append(f"{code.type} {name} = {code.text};")
            held.append(Code(name, code.type))
        for target, item in zip(targets, held, strict=True):
            lines += self._assigned(target, item)
        return ["{", *lines, "}"]

    def _augassign(self, statement: ast.AugAssign) -> list[str]:
        value = code_of(self._value(statement.value), self.mode)
        target = self._value(statement.target)
        if not isinstance(target, Code):
            raise TypeError("Cannot assign to a constant value.")
        name = self._fresh("_place_")
        place = Code(name, target.type)
        result = operations.operate(type(statement.op), (place, value), self.mode)
        return ["{", f"auto &{name} = {target.text};", f"{name} = {self._fitting(result, place).text};", "}"]

    # Expressions

    def _value(self, expression: ast.expr) -> Value:
        value = self._value_of(expression)
        return value.value if isinstance(value, Constant) and isinstance(value.value, (Code, Items)) else value

    def _value_of(self, expression: ast.expr) -> Value:
        if isinstance(expression, ast.Constant):
            return Constant(expression.value)
        if isinstance(expression, ast.Name):
            found = self._variables.get(expression.id) or self._constants.get(expression.id)
            if found is None:
                raise NameError(f"Unbound name: {expression.id}")
            return found
        if isinstance(expression, ast.Attribute):
            return indexing.attribute_of(self._value(expression.value), expression.attr)
        if isinstance(expression, ast.Subscript):
            return indexing.element_of(self._value(expression.value), self._value(expression.slice), self.mode)
        if isinstance(expression, ast.Tuple):
            items = [self._value(item) for item in expression.elts]
            constants = [item.value for item in items if isinstance(item, Constant)]
            return Constant(tuple(constants)) if len(constants) == len(items) else Items(tuple(items))
        if isinstance(expression, ast.BoolOp):
            return self._joined(expression)
        if isinstance(expression, ast.BinOp):
            operands = (self._value(expression.left), self._value(expression.right))
            return operations.operate(type(expression.op), operands, self.mode)
        if isinstance(expression, ast.UnaryOp):
            return operations.operate(type(expression.op), (self._value(expression.operand),), self.mode)
        if isinstance(expression, ast.Compare):
            return self._compared(expression)
        if isinstance(expression, ast.IfExp):
            return self._chosen(expression)
        if isinstance(expression, ast.Call):
            return self._called(expression)
        raise ValueError(f"Not supported: {type(expression).__name__}")

    def _joined(self, expression: ast.BoolOp) -> Value:
        value = self._value(expression.values[0])
        for operand in expression.values[1:]:
            value = operations.operate(type(expression.op), (value, self._value(operand)), self.mode)
        return value

    def _compared(self, expression: ast.Compare) -> Value:
        if len(expression.ops) != 1:
            raise NotImplementedError("Comparison of 3 or more values is not implemented.")
        operands = (self._value(expression.left), self._value(expression.comparators[0]))
        kind = type(expression.ops[0])
        if kind in (ast.Is, ast.IsNot) and all(isinstance(operand, Constant) for operand in operands):
            same = operands[0].value is operands[1].value  # type: ignore[union-attr]
            return Constant(same == (kind is ast.Is))
        return operations.operate(kind, operands, self.mode)

    def _chosen(self, expression: ast.IfExp) -> Value:
        condition = self._value(expression.test)
        if isinstance(condition, Constant):
            return self._value(expression.body if condition.value else expression.orelse)
        x, y = self._value(expression.body), self._value(expression.orelse)
        left, right = self._like(x, y), self._like(y, x)
        if left.type != right.type:
            raise TypeError(f"Type mismatch in conditional expression: {left.type} != {right.type}")
        return Code(f"({truth(condition, self.mode).text} ? {left.text} : {right.text})", left.type)

    def _like(self, value: Value, other: Value) -> Code:
        """Return ``value``, a number of Python with the type of ``other``."""
        kind = code_of(other, self.mode).type
        if isinstance(value, Constant) and not isinstance(value.value, np.generic) and isinstance(kind, Scalar):
            return cast(value, kind, "same_kind", self.mode)
        return code_of(value, self.mode)

    def _arguments(self, expression: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        if any(isinstance(arg, ast.Starred) for arg in expression.args) or any(
            each.arg is None for each in expression.keywords
        ):
            raise NotImplementedError("Arguments with * and ** are not supported.")
        args = [self._value(arg) for arg in expression.args]
        return args, {str(each.arg): self._value(each.value) for each in expression.keywords}

    def _called(self, expression: ast.Call) -> Value:
        called = self._value(expression.func)
        args, kwargs = self._arguments(expression)
        if not isinstance(called, Constant):
            raise TypeError("A value of a kernel is not callable.")
        function = called.value
        constant = [*args, *kwargs.values()]
        if isinstance(function, Intrinsic):
            return function.translate(self, *args, **kwargs)
        instantiate = getattr(function, "instantiate", None) if isinstance(function, Type) else None
        if instantiate is not None:
            made: Value = instantiate(self, *args, **kwargs)
            return made
        device = getattr(function, "translate_call", None)
        if device is not None:
            result: Value = device(self, *args, **kwargs)
            return result
        try:
            intrinsic = functions.BUILTINS.get(function)
        except TypeError:  # The function has no hash.
            intrinsic = None
        is_constant = all(isinstance(value, Constant) for value in constant)
        if intrinsic is not None and not (is_constant and constant):
            return intrinsic.translate(self, *args, **kwargs)
        if isinstance(function, ufunc):
            dtype = kwargs.pop("dtype", Constant(None))
            if kwargs:
                raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword to ufunc {function.name}")
            if not isinstance(dtype, Constant):
                raise TypeError("dtype is a constant.")
            return operations.call(function.name, args, self.mode, dtype.value)
        if is_constant:
            values = [value.value for value in args if isinstance(value, Constant)]
            named = {name: value.value for name, value in kwargs.items() if isinstance(value, Constant)}
            return Constant(function(*values, **named))
        if inspect.isclass(function) and issubclass(function, _CASTS):
            if len(args) != 1 or kwargs:
                raise TypeError(f"{function.__name__}() takes one argument in a kernel.")
            return cast(args[0], Scalar(function), "unsafe", self.mode)
        raise TypeError(f"Invalid function call {getattr(function, '__name__', function)!r}.")

    # Names

    def _declare(self, name: str, kind: Type) -> None:
        if kind == VOID:
            raise TypeError(f"The call whose result {name!r} gets has no result.")
        self._variables[name] = Code(name, kind)
        self._declared.append(f"{kind} {name};")

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        name = f"{prefix}{self._count}"
        return name if name not in self._variables else self._fresh(prefix)


_REFUSED: dict[type[ast.stmt], tuple[type[Exception], str]] = {
    ast.AsyncFor: (ValueError, "`async for` is not allowed."),
    ast.AsyncFunctionDef: (NotImplementedError, "Nested functions are not supported."),
    ast.AsyncWith: (ValueError, "Switching contexts are not allowed."),
    ast.ClassDef: (NotImplementedError, "A class is not supported."),
    ast.Delete: (NotImplementedError, "`del` is not supported."),
    ast.FunctionDef: (NotImplementedError, "Nested functions are not supported."),
    ast.Global: (ValueError, "Cannot use global/nonlocal in the target functions."),
    ast.Import: (ValueError, "Cannot import modules from the target functions."),
    ast.ImportFrom: (ValueError, "Cannot import modules from the target functions."),
    ast.Nonlocal: (ValueError, "Cannot use global/nonlocal in the target functions."),
    ast.Raise: (ValueError, "throw/catch are not allowed."),
    ast.Try: (ValueError, "throw/catch are not allowed."),
    ast.With: (ValueError, "Switching contexts are not allowed."),
}


def _refuse(statement: ast.stmt) -> NoReturn:
    kind, message = _REFUSED.get(
        type(statement), (NotImplementedError, f"The statement {type(statement).__name__} is not supported.")
    )
    raise kind(message)


def _parsed(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str, list[str], int]:
    """Return the tree of a function, its file, its lines, and the number of its first line.

    Raises:
        NotImplementedError: The function is neither a ``def`` nor a ``lambda``.
        RuntimeError: Python has no source of the function.
        ValueError: Several functions stand in the lines of a ``lambda``.
    """
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise RuntimeError(
            f"Python has no source of {function!r}, which the translation into a kernel needs. Write the function in a "
            "file or in a notebook."
        ) from None
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    if getattr(function, "__name__", "") == "<lambda>":
        return _lambda(function, file, first, first + len(lines)), _quoted(file), linecache.getlines(file), 1
    parsed = _first_statement("".join(lines))
    if not isinstance(parsed, ast.FunctionDef):
        raise NotImplementedError(f"A kernel is a function with def, not {type(parsed).__name__}.")
    return parsed, _quoted(file), lines, max(first, 1)


def _first_statement(text: str) -> ast.stmt:
    """Return the first statement of ``text``, which may be indented, except for lines in its string literals."""
    if not text[0].isspace():
        return ast.parse(text).body[0]
    (block,) = ast.parse(f"if True:\n{text}").body
    assert isinstance(block, ast.If)
    ast.increment_lineno(block, -1)
    return block.body[0]


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of ``function`` in C++."""
    name = function.__name__
    return "_lambda_kernel" if name == "<lambda>" else name


def _lambda(function: Callable[..., Any], file: str, first: int, beyond: int) -> ast.FunctionDef:
    """Return the tree of a ``lambda`` in the lines from ``first`` to the one before ``beyond``, as that of a ``def``.

    The lines alone may be no whole statement, so the whole file is read.
    """
    found = [
        node
        for node in ast.walk(ast.parse("".join(linecache.getlines(file))))
        if isinstance(node, ast.Lambda) and first <= node.lineno < beyond
    ]
    if len(found) != 1:
        raise ValueError(
            f"Multiple callables are found near the definition of {function}, and JIT could not identify the source "
            "code for it. Write each lambda in a line of its own."
        )
    (node,) = found
    body = ast.copy_location(ast.Return(node.body), node)
    made = ast.FunctionDef(name=name_of(function), args=node.args, body=[body], decorator_list=[])
    return ast.copy_location(made, node)


def _quoted(file: str) -> str:
    return file.replace("\\", "/").replace('"', "'")


def _parameters(tree: ast.FunctionDef) -> list[str]:
    """Return the names of the parameters.

    Raises:
        NotImplementedError: There are parameters of other kinds, or defaults.
    """
    given = tree.args
    if given.vararg is not None or given.kwarg is not None or given.kwonlyargs or given.defaults:
        raise NotImplementedError(
            f"{tree.name}() has parameters with *, **, defaults, or after a star, which kernels cannot have."
        )
    return [each.arg for each in [*given.posonlyargs, *given.args]]
