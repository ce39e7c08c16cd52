"""From the user's function to two functions: what the oracle runs, and what Numba compiles.

Both are rewritten from one syntax tree, so that they cannot drift apart.

*Native.* Every operator and every call of a builtin becomes a call of a core function of
:mod:`specstream.compiler.arithmetic`, whose meaning is ours and not Numba's. Access to state, event
and emit becomes calls of :mod:`specstream.compiler.access`. Every function gets the running
transaction as a hidden first parameter, because loops poll its kill flag.

*Oracle.* The same code, with integer literals as wrapping integers and the names of builtins and
modules bound to :mod:`specstream.compiler.numbers`. Line numbers are those of the file, so that
tracebacks and pdb point into the user's own text.

Globals and closures are read once, at decoration: constants are frozen for both, plain functions
are taken along. What could not mean the same in both is refused here, with its line and a way out.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import math
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from specstream.compiler import access, arithmetic, numbers, oracle
from specstream.compiler.flow import check_definite_assignment
from specstream.errors import CompileError, DeclarationError
from specstream.locks import acquire, release
from specstream.schema import Schema
from specstream.strings import string_code

__all__ = ["Program", "analyse"]

RUN = "__ss_run"


@dataclass
class Program:
    """An operator's function and all it calls, rewritten.

    Attributes:
        oracle: runs on the wrappers of :mod:`specstream.compiler.oracle`.
        native: source for Numba; parameters (run, state, event, emit).
        helpers: names of the functions compiled along.
        strings: string literals in the code.
        fingerprint: everything about the code that decides what it does, as text.
        reads_timestamp: whether the code reads ``event.timestamp``.
    """

    operator: str
    oracle: Callable[..., None]
    native: Callable[..., None]
    helpers: tuple[str, ...]
    strings: tuple[str, ...]
    fingerprint: str
    reads_timestamp: bool


@dataclass
class _Function:
    """One plain function on its way through the rewriting."""

    original: types.FunctionType
    tree: ast.FunctionDef
    filename: str
    parameters: tuple[str, ...]
    native_namespace: dict[str, Any] = field(default_factory=dict)
    oracle_namespace: dict[str, Any] = field(default_factory=dict)

    def compile(self, tree: ast.FunctionDef, namespace: dict[str, Any]) -> types.FunctionType:
        module = ast.Module([tree], [])
        ast.fix_missing_locations(module)
        namespace["__name__"] = self.original.__module__
        exec(compile(module, self.filename, "exec"), namespace)
        function: types.FunctionType = namespace[tree.name]
        function.__qualname__ = self.original.__qualname__
        return function


def analyse(function: Callable[..., Any], operator: str, emits: Schema) -> Program:
    """Checks and rewrites an operator's function.

    Raises:
        CompileError: the function has something that cannot be compiled; names line and way out.
        DeclarationError: it is not a plain function of (state, event, emit).
    """
    if not isinstance(function, types.FunctionType):
        raise DeclarationError(
            f"operator {operator!r} is {type(function).__name__}; expected a plain function: "
            "def process(state, event, emit)"
        )
    if len(inspect.signature(function).parameters) != 3:
        raise DeclarationError(
            f"operator {operator!r} takes ({', '.join(inspect.signature(function).parameters)}); "
            "expected exactly three parameters: (state, event, emit)"
        )
    return _Analysis(operator, emits).program(function)


class _Analysis:
    def __init__(self, operator: str, emits: Schema) -> None:
        self.operator = operator
        self.emits = emits
        self.done: dict[types.FunctionType, tuple[Any, types.FunctionType]] = {}
        self.open: list[types.FunctionType] = []
        self.strings: list[str] = []
        self.fingerprint: list[str] = []
        self.reads_timestamp = False

    def program(self, function: types.FunctionType) -> Program:
        native, oracle = self.function(function)
        return Program(
            self.operator,
            oracle,
            native,
            tuple(helper.__name__ for helper in self.done if helper is not function),
            tuple(dict.fromkeys(self.strings)),
            "\n".join(self.fingerprint),
            self.reads_timestamp,
        )

    def function(self, original: types.FunctionType) -> tuple[Any, types.FunctionType]:
        """The native and the oracle form of one function; helpers are done on the way."""
        if original in self.done:
            return self.done[original]
        source = self.parse(original)
        self.open.append(original)
        check = _Check(self, source)
        check.run()
        native_tree = _Native(self, source, check).rewrite()
        oracle_tree = _Oracle(self, source, check).rewrite()
        self.fingerprint.append(ast.dump(native_tree))
        self.fingerprint.append(repr(sorted((k, repr(v)) for k, v in check.constants.items())))
        native = source.compile(native_tree, source.native_namespace)
        oracle = source.compile(oracle_tree, source.oracle_namespace)
        self.open.pop()
        self.done[original] = (native, oracle)
        return native, oracle

    def parse(self, original: types.FunctionType) -> _Function:
        code = original.__code__
        try:
            lines, first = inspect.getsourcelines(original)
        except (OSError, TypeError):
            raise CompileError(
                self.operator,
                code.co_filename,
                code.co_firstlineno,
                f"the source of {original.__name__!r} cannot be read",
                "define it in a file or a notebook cell, not with exec or at a bare prompt",
            ) from None
        try:
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except SyntaxError:
            tree = ast.Module([], [])
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if not found or found[0].name != code.co_name:
            raise CompileError(
                self.operator,
                code.co_filename,
                code.co_firstlineno,
                f"{original.__name__!r} is not the only statement of its lines, or a lambda",
                "write it as a def statement of its own",
            )
        ast.increment_lineno(found[0], first - 1)
        parameters = tuple(argument.arg for argument in found[0].args.args)
        return _Function(original, found[0], code.co_filename, parameters)

    def refuse(self, source: _Function, node: ast.AST, problem: str, way_out: str) -> NoReturn:
        line = getattr(node, "lineno", source.tree.lineno)
        raise CompileError(self.operator, source.filename, line, problem, way_out)


_MISSING = object()

_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("try/except", "test for the condition instead; what is raised ends the event"),
    ast.TryStar: ("try/except", "test for the condition instead; what is raised ends the event"),
    ast.With: ("a with statement", "operators hold no resources: move it out of the operator"),
    ast.Import: ("an import", "import at the top of the module"),
    ast.ImportFrom: ("an import", "import at the top of the module"),
    ast.FunctionDef: ("a function inside a function", "define it at module level"),
    ast.AsyncFunctionDef: ("an async function", "operators are plain functions"),
    ast.ClassDef: ("a class", "keep data in state fields"),
    ast.Lambda: ("a lambda", "write a plain function at module level"),
    ast.List: ("a list, which allocates", "use a scratch array: ss.scratch(int, n)"),
    ast.ListComp: ("a comprehension, which allocates", "use a loop and a scratch array"),
    ast.SetComp: ("a comprehension, which allocates", "use a loop and a scratch array"),
    ast.DictComp: ("a comprehension, which allocates", "use a loop and a scratch array"),
    ast.GeneratorExp: ("a generator", "write the loop out"),
    ast.Dict: ("a dict, which allocates", "use state arrays and a hash"),
    ast.Set: ("a set, which allocates", "use state arrays and a hash"),
    ast.Global: ("a global statement", "keep what changes in state fields"),
    ast.Nonlocal: ("a nonlocal statement", "keep what changes in state fields"),
    ast.Delete: ("a del statement", "assign another value"),
    ast.Yield: ("yield", "emit(...) gives out rows"),
    ast.YieldFrom: ("yield", "emit(...) gives out rows"),
    ast.Await: ("await", "operators are plain functions"),
    ast.AsyncFor: ("async for", "operators are plain functions"),
    ast.AsyncWith: ("async with", "operators are plain functions"),
    ast.NamedExpr: ("an assignment inside an expression", "write it as a statement before"),
    ast.Starred: ("a starred expression", "write the values out"),
    ast.Match: ("a match statement", "write if and elif"),
    ast.JoinedStr: ("a formatted string", "formatted strings may only stand in raise statements"),
    ast.MatMult: ("the @ operator", "write the loops out"),
    ast.Is: ("`is`", "compare with =="),
    ast.IsNot: ("`is not`", "compare with !="),
}

_FORBIDDEN_CALLS = {
    "print": "emit a row instead, or run the operator with run_sequential under pdb",
    "open": "operators do no input or output",
    "input": "operators do no input or output",
    "list": "use a scratch array: ss.scratch(int, n)",
    "dict": "use state arrays and a hash",
    "set": "use state arrays and a hash",
    "sorted": "sort in place in a scratch array",
    "str": "strings are codes inside an operator; they come out as text when emitted",
    "isinstance": "types are fixed by the schema",
    "getattr": "name the field",
    "setattr": "name the field",
    "eval": "write the code out",
    "exec": "write the code out",
    "hash": "write an arithmetic hash: hash() differs between runs",
    "id": "operators see values only",
    "pow": "write a ** b",
    "reversed": "count down with range(len(x) - 1, -1, -1)",
}

_FORBIDDEN_MODULES = {
    "random": "use event.random(i) or event.random_bits(i), which repeat when the event is rerun",
    "time": "use event.timestamp, which repeats when the event is rerun",
    "datetime": "use event.timestamp, which repeats when the event is rerun",
    "os": "operators do no input or output",
    "sys": "operators do no input or output",
}

_VIEW_FUNCTIONS: dict[str, Any] = {
    "min": access.view_min,
    "max": access.view_max,
    "sum": access.view_sum,
}
_LOCK_FUNCTIONS: dict[Any, Any] = {acquire: access.lock_acquire, release: access.lock_release}
_NATIVE_ITERATION: dict[str, Any] = {
    "range": range,
    "len": len,
    "enumerate": enumerate,
    "zip": zip,
}


class _Check:
    """Walks one function, refuses what cannot be compiled, resolves every name it reads."""

    def __init__(self, analysis: _Analysis, source: _Function) -> None:
        self.analysis = analysis
        self.source = source
        self.locals = self.find_locals()
        self.resolved: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.raising: set[ast.AST] = set()

    def refuse(self, node: ast.AST, problem: str, way_out: str) -> NoReturn:
        self.analysis.refuse(self.source, node, problem, way_out)

    def find_locals(self) -> frozenset[str]:
        stored = {
            node.id
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        return frozenset(self.source.parameters) | stored

    def run(self) -> None:
        tree = self.source.tree
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            self.refuse(
                tree,
                f"{tree.name!r} has defaults, starred or keyword-only parameters",
                "use plain positional parameters",
            )
        for statement in tree.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Raise | ast.Assert):
                    said = node.exc if isinstance(node, ast.Raise) else node.msg
                    if isinstance(node, ast.Raise) and (said is None or node.cause is not None):
                        self.refuse(
                            node,
                            "raise without an exception, or with `from`",
                            "write raise SomeError(...)",
                        )
                    if said is not None:
                        self.raising.update(ast.walk(said))
        for statement in tree.body:
            for node in ast.walk(statement):
                self.node(node)
        check_definite_assignment(
            tree,
            self.locals,
            lambda node, name: self.refuse(
                node,
                f"{name!r} may be undefined here",
                f"assign {name!r} on every path before, for instance at the top of the function",
            ),
        )

    def node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.name(node)
        if node in self.raising:
            return
        parts = [node, *node.ops] if isinstance(node, ast.Compare) else [node]
        refused = next((_REFUSED[type(part)] for part in parts if type(part) in _REFUSED), None)
        # An operator of a comparison has no line of its own; it is met as part of the comparison.
        if refused is not None and not isinstance(node, ast.cmpop):
            self.refuse(node, f"{refused[0]} cannot be compiled", refused[1])
        if isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if value is None or isinstance(value, bool | float | str):
            return
        if not isinstance(value, int):
            self.refuse(
                node, f"the constant {value!r} cannot be compiled", "use int, float, bool or str"
            )
        elif not -(2**63) <= value < 2**64:
            self.refuse(node, f"the constant {value} does not fit 64 bits", "use a smaller number")

    def name(self, node: ast.Name) -> None:
        name = node.id
        if name in self.locals or name in self.resolved:
            return
        value = self.lookup(name)
        if node in self.raising and not isinstance(value, int | float | str):
            if value is not _MISSING:
                self.resolved[name] = value
            return
        if value is _MISSING:
            self.refuse(node, f"name {name!r} is not defined", "define it before the operator")
        if isinstance(value, types.ModuleType):
            root = value.__name__.split(".")[0]
            if root in _FORBIDDEN_MODULES:
                self.refuse(node, f"module {root!r} cannot be used", _FORBIDDEN_MODULES[root])
            if value not in (math, np):
                self.refuse(
                    node,
                    f"module {value.__name__!r} cannot be used",
                    "only math, and the dtypes and constants of numpy, can be",
                )
        elif isinstance(value, types.FunctionType):
            if value in self.analysis.open:
                self.refuse(node, f"{name!r} calls itself", "write the recursion as a loop")
        elif self.is_supported_callable(value):
            pass
        elif _is_constant(value):
            if isinstance(value, str):
                self.analysis.strings.append(value)
            self.constants[name] = value
        elif name in _FORBIDDEN_CALLS and value is getattr(builtins, name):
            self.refuse(node, f"{name}() cannot be used in an operator", _FORBIDDEN_CALLS[name])
        elif isinstance(value, list | dict | set | np.ndarray):
            self.refuse(
                node,
                f"{name!r} is a global {type(value).__name__}, which can change",
                "make it a tuple of numbers, or keep it in a state field",
            )
        else:
            self.refuse(
                node,
                f"{name!r} is {type(value).__name__}, which cannot be compiled",
                "use numbers, strings, tuples of them, and plain functions",
            )
        self.resolved[name] = value

    @staticmethod
    def is_supported_callable(value: Any) -> bool:
        return (
            _builtin_name(value) is not None
            or _math_name(value) is not None
            or (_numpy_name(value) is not None)
        )

    def lookup(self, name: str) -> Any:
        function = self.source.original
        if name in function.__code__.co_freevars:
            cells = function.__closure__ or ()
            cell = cells[function.__code__.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                return _MISSING
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name, _MISSING)

    def call(self, node: ast.Call) -> None:
        if node.keywords and any(keyword.arg is None for keyword in node.keywords):
            self.refuse(node, "a call with **", "write the arguments out")
        callee = node.func
        if not isinstance(callee, ast.Name | ast.Attribute):
            self.refuse(node, "only named functions can be called", "call a function by its name")

    def attribute(self, node: ast.Attribute) -> None:
        if node.attr == "timestamp":
            self.analysis.reads_timestamp = True
        if isinstance(node.value, ast.Name) and node.value.id not in self.locals:
            module = self.lookup(node.value.id)
            if (
                module is np
                and node.attr not in arithmetic.NUMPY
                and (node.attr not in numbers.NUMPY_CONSTANTS)
            ):
                self.refuse(
                    node,
                    f"np.{node.attr} cannot be used: NumPy's results differ from Python's in the "
                    "last bit",
                    f"write math.{node.attr} where there is one, or a loop",
                )
            if (
                module is math
                and node.attr not in arithmetic.MATH
                and (node.attr not in numbers.MATH_CONSTANTS)
            ):
                self.refuse(
                    node,
                    f"math.{node.attr} is not supported",
                    f"supported are: {', '.join(sorted(arithmetic.MATH))}",
                )


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant(element) for element in value)
    if isinstance(value, bool | np.bool_ | float | str):
        return True
    return isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**64


def _builtin_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    if name in numbers.ORACLE_BUILTINS and getattr(builtins, name, None) is value:
        return str(name)
    return None


def _math_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    return name if name in arithmetic.MATH and getattr(math, name, None) is value else None


def _numpy_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    if isinstance(value, type) and name in arithmetic.NUMPY and getattr(np, name, None) is value:
        return str(name)
    return None


class _Rewriter(ast.NodeTransformer):
    """What both rewritings share: literals of strings, negative literals, the signature."""

    def __init__(self, analysis: _Analysis, source: _Function, check: _Check) -> None:
        self.analysis = analysis
        self.source = source
        self.check = check

    def rewrite(self) -> ast.FunctionDef:
        # A copy, because the other rewriting starts from the same tree.
        tree = copy.deepcopy(self.source.tree)
        tree.decorator_list = []
        tree.returns = None
        for argument in tree.args.args:
            argument.annotation = None
        tree.body = self.statements(tree.body) or [ast.Pass()]
        return tree

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring, or an ellipsis for a body
            result = self.visit(statement)
            rewritten.extend(result if isinstance(result, list) else [result])
        return rewritten

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        # -2**63 is a literal of its own, not the negation of an unsigned one.
        operand = node.operand
        if (
            isinstance(node.op, ast.USub)
            and isinstance(operand, ast.Constant)
            and type(operand.value) is int
        ):
            return self.visit(ast.copy_location(ast.Constant(-operand.value), node))
        return self.unary(node)

    def unary(self, node: ast.UnaryOp) -> Any:
        return self.generic_visit(node)

    def string(self, text: str) -> int:
        self.analysis.strings.append(text)
        return string_code(text)


_ORACLE_MATH = numbers.OracleMath()
_ORACLE_NUMPY = numbers.OracleNumpy()


class _Oracle(_Rewriter):
    def rewrite(self) -> ast.FunctionDef:
        namespace = self.source.oracle_namespace
        for name, value in self.check.resolved.items():
            namespace[name] = self.freeze(name, value)
        return super().rewrite()

    def freeze(self, name: str, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return value if value in _LOCK_FUNCTIONS else self.analysis.function(value)[1]
        if value is math:
            return _ORACLE_MATH
        if value is np:
            return _ORACLE_NUMPY
        builtin, mathematical, numeric = (
            _builtin_name(value),
            _math_name(value),
            _numpy_name(value),
        )
        if builtin is not None:
            return oracle.BUILTINS[builtin]
        if mathematical is not None:
            return getattr(_ORACLE_MATH, mathematical)
        if numeric is not None:
            return getattr(_ORACLE_NUMPY, numeric)
        return _oracle_constant(value) if name in self.check.constants else value

    def visit_Raise(self, node: ast.Raise) -> Any:
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self.visit(node.test)
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, str):
            value = self.string(value)
        if type(value) is not int:
            return node
        name = f"__ss_constant_{value}".replace("-", "minus_")
        self.source.oracle_namespace[name] = numbers.to_oracle(value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self.function(node, node.left, node.right)

    def unary(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.function(node, node.operand)

    def function(self, node: ast.BinOp | ast.UnaryOp, *operands: ast.expr) -> ast.expr:
        """A few operators mean something else on Python's own floats and bools."""
        meaning = numbers.ORACLE_OPERATORS.get(type(node.op))
        if meaning is None:
            return node
        name = f"__ss_{type(node.op).__name__}"
        self.source.oracle_namespace[name] = meaning
        call = ast.Call(ast.Name(name, ast.Load()), list(operands), [])
        return ast.copy_location(call, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if type(node.op) in numbers.ORACLE_OPERATORS:
            return [self.visit(part) for part in _expand_augmented(node, self.check)]
        return self.generic_visit(node)


def _oracle_constant(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_oracle_constant(element) for element in value)
    if isinstance(value, str):
        return numbers.to_oracle(string_code(value))
    return numbers.to_oracle(value)


def _native_constant(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_native_constant(element) for element in value)
    if isinstance(value, str):
        return string_code(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.uint64):
        return value
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _expand_augmented(node: ast.AugAssign, check: _Check) -> list[ast.stmt]:
    """``target op= value`` with the target's parts evaluated once, as Python does."""
    target = node.target
    before: list[ast.stmt] = []

    def once(part: ast.expr, name: str) -> Callable[[], ast.expr]:
        before.append(ast.Assign([ast.Name(name, ast.Store())], part))
        return lambda: ast.Name(name, ast.Load())

    if isinstance(target, ast.Name):
        load: ast.expr = ast.Name(target.id, ast.Load())
        store: ast.expr = ast.Name(target.id, ast.Store())
    elif isinstance(target, ast.Attribute):
        owner = once(target.value, "__ss_owner")
        load = ast.Attribute(owner(), target.attr, ast.Load())
        store = ast.Attribute(owner(), target.attr, ast.Store())
    else:
        if any(isinstance(part, ast.Slice) for part in ast.walk(target.slice)):
            check.refuse(
                node,
                "a slice cannot be assigned with an operator",
                "write a loop over its elements",
            )
        owner = once(target.value, "__ss_owner")
        index = once(target.slice, "__ss_index")
        load = ast.Subscript(owner(), index(), ast.Load())
        store = ast.Subscript(owner(), index(), ast.Store())
    value = ast.BinOp(load, node.op, node.value)
    statements = [*before, ast.Assign([store], value)]
    for statement in statements:
        for part in ast.walk(statement):
            if not hasattr(part, "lineno"):
                ast.copy_location(part, node)
    return statements


def _core_name(function: Any) -> str:
    for attribute in ("name", "__name__", "_name"):
        name = getattr(function, attribute, None)
        if isinstance(name, str):
            return name
    raise AssertionError(function)


class _Native(_Rewriter):
    def rewrite(self) -> ast.FunctionDef:
        namespace = self.source.native_namespace
        namespace["__ss_Fault"] = arithmetic.OperatorFault
        for name, value in self.check.constants.items():
            namespace[name] = _native_constant(value)
        tree = super().rewrite()
        tree.args.args.insert(0, ast.arg(RUN))
        return tree

    def core(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        """A call of a core function, bound under a name no user can write."""
        name = f"__ss_{_core_name(function)}"
        known = self.source.native_namespace.setdefault(name, function)
        assert known is function, name
        call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
        ast.copy_location(call, at)
        ast.copy_location(call.func, at)
        return call

    @staticmethod
    def run() -> ast.expr:
        return ast.Name(RUN, ast.Load())

    def unary(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.OPERATORS[type(node.op)], node.operand, at=node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.OPERATORS[type(node.op)], node.left, node.right, at=node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if len(node.ops) == 1:
            return self.comparison(node.ops[0], operands[0], operands[1], node)
        # a < b < c is a < b and b < c. Evaluating b twice is the same as once, unless it calls a
        # function, which may write to the state.
        for middle in operands[1:-1]:
            for part in ast.walk(middle):
                if isinstance(part, ast.Name) and part.id.startswith("__ss_function_"):
                    self.check.refuse(
                        node,
                        "a chained comparison calls a function in its middle",
                        "assign the function's value to a name first",
                    )
        parts: list[ast.expr] = [
            self.comparison(op, left, copy.deepcopy(right), node)
            for op, left, right in zip(node.ops, operands, operands[1:], strict=False)
        ]
        return ast.copy_location(ast.BoolOp(ast.And(), parts), node)

    def comparison(self, op: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.AST) -> ast.expr:
        if isinstance(op, ast.In | ast.NotIn):
            found: ast.expr = self.core(access.contains, right, left, at=node)
            if isinstance(op, ast.NotIn):
                found = self.core(arithmetic.OPERATORS[ast.Not], found, at=node)
            return found
        return self.core(arithmetic.OPERATORS[type(op)], left, right, at=node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str):
            return ast.copy_location(ast.Constant(self.string(node.value)), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return [
            part
            for statement in _expand_augmented(node, self.check)
            for part in self.statements([statement])
        ]

    def visit_Assign(self, node: ast.Assign) -> Any:
        if len(node.targets) == 1:
            return self.assign(node.targets[0], self.visit(node.value), node)
        name = "__ss_value"
        statements: list[ast.stmt] = [
            ast.copy_location(
                ast.Assign([ast.Name(name, ast.Store())], self.visit(node.value)), node
            )
        ]
        for target in node.targets:
            statements += self.assign(target, ast.Name(name, ast.Load()), node)
        return statements

    def assign(self, target: ast.expr, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            return [ast.copy_location(ast.Assign([target], value), node)]
        if isinstance(target, ast.Attribute):
            owner = self.visit(target.value)
            call = self.core(access.set_field, owner, ast.Constant(target.attr), value, at=node)
            return [ast.copy_location(ast.Expr(call), node)]
        if isinstance(target, ast.Subscript):
            array = self.visit(target.value)
            index = self.index(target.slice)
            call = self.core(access.set_item, array, index, value, at=node)
            return [ast.copy_location(ast.Expr(call), node)]
        assert isinstance(target, ast.Tuple)
        if all(isinstance(element, ast.Name) for element in target.elts):
            return [ast.copy_location(ast.Assign([target], value), node)]
        names = [f"__ss_part_{number}" for number in range(len(target.elts))]
        parts: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        statements: list[ast.stmt] = [
            ast.copy_location(ast.Assign([ast.Tuple(parts, ast.Store())], value), node)
        ]
        for name, element in zip(names, target.elts, strict=True):
            statements += self.assign(element, ast.Name(name, ast.Load()), node)
        return statements

    def index(self, node: ast.expr) -> ast.expr:
        """An index as an expression that may be an argument: slices as calls of slice()."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(
                ast.Tuple([self.index(element) for element in node.elts], ast.Load()), node
            )
        if isinstance(node, ast.Slice):
            self.source.native_namespace["__ss_slice"] = slice
            none = ast.Constant(None)
            parts = [self.visit(p) if p is not None else none for p in (node.lower, node.upper)]
            if node.step is not None:
                parts.append(self.visit(node.step))
            return ast.copy_location(ast.Call(ast.Name("__ss_slice", ast.Load()), parts, []), node)
        rewritten: ast.expr = self.visit(node)
        return rewritten

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        # Which exception does not matter here: the oracle raises the real one.
        fault = ast.copy_location(ast.Name("__ss_Fault", ast.Load()), node)
        return ast.copy_location(ast.Raise(fault, None), node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        failing = self.visit_Raise(ast.copy_location(ast.Raise(None, None), node))
        passing = ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.If(self.visit(node.test), [passing], [failing]), node)

    def visit_If(self, node: ast.If) -> Any:
        node.test = self.visit(node.test)
        node.body = self.statements(node.body) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self.statements(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> Any:
        node.test = self.visit(node.test)
        return self.loop(node, access.poll_while)

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.visit(node.iter)
        return self.loop(node, access.poll_for)

    def loop(self, node: ast.While | ast.For, poll: Any) -> ast.AST:
        polling = ast.copy_location(ast.Expr(self.core(poll, self.run(), at=node)), node)
        node.body = [polling, *self.statements(node.body)]
        node.orelse = self.statements(node.orelse)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id not in self.check.locals:
            module = self.check.resolved.get(node.value.id)
            constants = {math: numbers.MATH_CONSTANTS, np: numbers.NUMPY_CONSTANTS}
            if module in (math, np):
                value = constants[module].get(node.attr)
                if value is None:
                    self.check.refuse(node, f"{node.value.id}.{node.attr} is not called", "call it")
                return ast.copy_location(ast.Constant(value), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id not in self.check.locals:
            value = self.check.resolved.get(node.id)
            if (
                node.id not in self.check.constants
                and node.id != RUN
                and not (node.id.startswith("__ss_"))
            ):
                self.check.refuse(
                    node,
                    f"{node.id!r} is not called",
                    f"call it: {getattr(value, '__name__', node.id)}(...)",
                )
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        callee = node.func
        if isinstance(callee, ast.Attribute):
            return self.method(node, callee)
        assert isinstance(callee, ast.Name)
        if callee.id.startswith("__ss_"):
            return self.generic_visit(node)
        if callee.id in self.check.locals:
            return self.emit(node, callee)
        value = self.check.resolved[callee.id]
        if isinstance(value, types.FunctionType):
            if value in _LOCK_FUNCTIONS:
                self.positional(node, callee.id)
                if len(node.args) != 1:
                    self.check.refuse(
                        node, f"{callee.id} takes one number", f"write {callee.id}(0)"
                    )
                lock = self.visit(node.args[0])
                return self.core(_LOCK_FUNCTIONS[value], self.run(), lock, at=node)
            return self.helper(node, callee, value)
        return self.builtin(node, callee.id, value)

    def emit(self, node: ast.Call, callee: ast.Name) -> ast.expr:
        if callee.id not in self.source.parameters:
            self.check.refuse(
                node,
                f"{callee.id!r} is a variable and cannot be called",
                "call emit, or a plain function by its own name",
            )
        names = self.analysis.emits.names
        expected = f"expected emit({', '.join(names)})"
        if len(node.args) > len(names):
            self.check.refuse(
                node, f"emit takes {len(names)} values, got {len(node.args)}", expected
            )
        given: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            assert keyword.arg is not None
            if keyword.arg not in names:
                self.check.refuse(node, f"emit has no column {keyword.arg!r}", expected)
            if keyword.arg in given:
                self.check.refuse(node, f"emit gets column {keyword.arg!r} twice", expected)
            given[keyword.arg] = keyword.value
        missing = [name for name in names if name not in given]
        if missing:
            self.check.refuse(node, f"emit lacks {', '.join(map(repr, missing))}", expected)
        values = [self.visit(given[name]) for name in names]
        return self.core(access.emit_row, callee, *values, at=node)

    def method(self, node: ast.Call, callee: ast.Attribute) -> ast.expr:
        owner = callee.value
        if isinstance(owner, ast.Name) and owner.id not in self.check.locals:
            module = self.check.resolved.get(owner.id)
            tables: dict[Any, Any] = {math: arithmetic.MATH, np: arithmetic.NUMPY}
            table = tables.get(module)
            if table is not None and callee.attr in table:
                self.positional(node, f"{owner.id}.{callee.attr}")
                arguments = [self.visit(argument) for argument in node.args]
                return self.core(table[callee.attr], *arguments, at=node)
        methods = {"random": access.event_random, "random_bits": access.event_random_bits}
        if callee.attr not in methods:
            self.check.refuse(
                node,
                f"method {callee.attr!r} cannot be called",
                "an event has random(i) and random_bits(i); use plain functions for the rest",
            )
        self.positional(node, callee.attr)
        if len(node.args) != 1:
            self.check.refuse(
                node,
                f"{callee.attr} takes one number",
                f"write event.{callee.attr}(0), and other numbers for more draws",
            )
        return self.core(methods[callee.attr], self.visit(owner), self.visit(node.args[0]), at=node)

    def positional(self, node: ast.Call, name: str) -> None:
        if node.keywords:
            self.check.refuse(node, f"{name} takes no keywords", "give the values by position")

    def helper(self, node: ast.Call, callee: ast.Name, value: types.FunctionType) -> ast.expr:
        import numba

        native, _ = self.analysis.function(value)
        if not isinstance(native, numba.core.dispatcher.Dispatcher):
            native = access.compiled(native)
            self.analysis.done[value] = (native, self.analysis.done[value][1])
        parameters = list(inspect.signature(value).parameters)
        given = dict(zip(parameters, node.args, strict=False))
        given.update({keyword.arg or "": keyword.value for keyword in node.keywords})
        count = len(node.args) + len(node.keywords)
        if set(given) != set(parameters) or count != len(parameters):
            self.check.refuse(
                node, f"{callee.id} takes ({', '.join(parameters)})", "give each parameter once"
            )
        self.source.native_namespace[f"__ss_function_{callee.id}"] = native
        arguments = [self.visit(given[name]) for name in parameters]
        function = ast.copy_location(ast.Name(f"__ss_function_{callee.id}", ast.Load()), node)
        return ast.copy_location(ast.Call(function, [self.run(), *arguments], []), node)

    def builtin(self, node: ast.Call, name: str, value: Any) -> ast.expr:
        self.positional(node, name)
        arguments = [self.visit(argument) for argument in node.args]
        builtin = _builtin_name(value)
        if builtin in _VIEW_FUNCTIONS and len(arguments) == 1:
            return self.core(_VIEW_FUNCTIONS[builtin], *arguments, at=node)
        if builtin in _NATIVE_ITERATION:
            self.source.native_namespace[f"__ss_{builtin}"] = _NATIVE_ITERATION[builtin]
            function = ast.copy_location(ast.Name(f"__ss_{builtin}", ast.Load()), node)
            return ast.copy_location(ast.Call(function, arguments, []), node)
        if builtin is not None and builtin in arithmetic.BUILTINS:
            return self.core(arithmetic.BUILTINS[builtin], *arguments, at=node)
        mathematical, numeric = _math_name(value), _numpy_name(value)
        if mathematical is not None:
            return self.core(arithmetic.MATH[mathematical], *arguments, at=node)
        if numeric is not None:
            return self.core(arithmetic.NUMPY[numeric], *arguments, at=node)
        return self.check.refuse(
            node,
            f"{name}() cannot be used in an operator",
            "use arithmetic, math functions, and plain functions of your own",
        )
