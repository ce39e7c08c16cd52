"""Refuses what an operator may not contain, with the line and what to write instead.

It also resolves every name that a function reads: constants keep the value that they have now, and
plain functions are compiled with the operator.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import math
import types
from typing import Any, NoReturn

import numpy as np

from specstream.compiler.facts.dates_and_decimals import of_constant
from specstream.compiler.facts.name_bindings import as_now
from specstream.compiler.frontend.definite_assignment import check_definite_assignment
from specstream.compiler.frontend.nullable_flows import is_none, mark_null_reads
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.frontend.refused_match_patterns import refused_pattern
from specstream.compiler.frontend.scopes import bound_names, own_name
from specstream.compiler.frontend.signatures import defaults_of
from specstream.compiler.frontend.try_and_raise import ExceptionCheck
from specstream.compiler.language import (
    builtin_functions,
    frozen,
    numbers,
    operations,
    standard_library,
)
from specstream.compiler.language.hints import names_it_has, of_class, of_library, of_numpy
from specstream.compiler.language.methods import CHANGING
from specstream.compiler.language.standard_library import PREFIX
from specstream.compiler.language.typing_refusals import FROZEN, TIMER_NAMES
from specstream.compiler.library import frozen_types
from specstream.compiler.library.math_exact import MATH, OF_SEVERAL
from specstream.compiler.library.numpy_functions import NUMPY, OF_ARRAYS
from specstream.compiler.oracle_objects.forms import CaughtName
from specstream.declarations.options import meant
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.rows import is_row

__all__ = [
    "FORBIDDEN_MODULES",
    "REFUSED",
    "Check",
    "builtin_name",
    "default_name",
    "is_constant",
    "is_none",
    "is_true",
    "math_name",
    "numpy_name",
]


_MISSING = object()

_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.TryStar: ("except*, for groups of exceptions", "write except"),
    ast.Import: ("an import", "import at the top of the module"),
    ast.ImportFrom: ("an import", "import at the top of the module"),
    ast.AsyncFunctionDef: ("an async function", "operators are plain functions"),
    ast.ClassDef: ("a class", "keep data in state fields"),
    ast.Global: ("a global statement", "keep what changes in state fields"),
    ast.Nonlocal: ("a nonlocal statement", "keep what changes in state fields"),
    ast.Yield: ("yield", "emit(...) gives out rows"),
    ast.YieldFrom: ("yield", "emit(...) gives out rows"),
    ast.Await: ("await", "operators are plain functions"),
    ast.AsyncFor: ("async for", "operators are plain functions"),
    ast.AsyncWith: ("async with", "operators are plain functions"),
    ast.JoinedStr: ("a formatted string", "formatted strings may only stand in raise statements"),
}

_TEXTS_OF_CAUGHT = {"str": "str({})", "repr": "repr({})"}

_FORBIDDEN_MODULES = {
    "random": "use event.random(i) or event.random_bits(i), which repeat when the event is rerun",
    "time": "use event.timestamp, which repeats when the event is rerun",
    "datetime": "use event.timestamp, which repeats when the event is rerun",
    "os": "operators cannot do input or output",
    "sys": "operators cannot do input or output",
    "logging": "operators cannot do input or output: emit a row instead",
    "uuid": "event.timestamp, event.source and event.sequence name an event uniquely",
    "secrets": "use event.random(i) or event.random_bits(i), which repeat when the event is rerun",
}

# What else decides whether something can be compiled has to know the same.
REFUSED, FORBIDDEN_MODULES = _REFUSED, _FORBIDDEN_MODULES


class Check:
    """Walks one function, refuses what cannot be compiled, resolves every name it reads."""

    def __init__(self, analysis: Analysis, source: FunctionSource) -> None:
        self.analysis = analysis
        self.source = source
        self.locals = self.find_locals()
        self.resolved: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.told: dict[str, Any] = {}  # what stands behind raise, and is not compiled
        self.names_of_none: frozenset[str] | None = None  # set when the rewriting asks
        self.raising: set[ast.AST] = set()
        self.caught: set[str] = set()  # names of exceptions

    def refuse(self, node: ast.AST, problem: str, hint: str) -> NoReturn:
        self.analysis.refuse(self.source, node, problem, hint)

    def find_locals(self) -> frozenset[str]:
        tree = self.source.tree
        return frozenset(self.source.parameters) | bound_names(ast.Module(tree.body, []))

    def run(self) -> None:
        tree = self.source.tree
        self.parameters(tree)
        self.defaults()
        dotted = CheckOfDottedNames(self)
        tree.body = [dotted.visit(statement) for statement in tree.body]
        exceptions = ExceptionCheck(tree, self.analysis.catches, self.static_value, self.refuse)
        self.raising = exceptions.exempt
        self.caught = exceptions.caught
        self.null_reads(tree)
        self.patterns(tree)
        for statement in tree.body:
            for node in ast.walk(statement):
                self.node(node)
        check_definite_assignment(
            tree,
            self.locals,
            self.undefined,
        )

    def patterns(self, tree: ast.FunctionDef) -> None:
        """Before names are looked at: a pattern of a class looks like a call of it."""
        for node in ast.walk(tree):
            for case in node.cases if isinstance(node, ast.Match) else ():
                refused = refused_pattern(case, node.subject)  # type: ignore[attr-defined]
                if refused is not None:
                    self.refuse(*refused)

    def undefined(self, node: ast.AST, name: str) -> NoReturn:
        """Refuses a read of a name to which no value may have been assigned."""
        name = own_name(name)
        if name in self.source.original.__globals__:
            self.refuse(
                node,
                f"{name!r} is assigned in this function, so it is not the one of the module, and "
                "may be undefined here",
                "keep what changes in a field of the state, or give the local one another name",
            )
        self.refuse(
            node,
            f"{name!r} may be undefined here",
            f"assign {name!r} on every path before, for instance at the top of the function",
        )

    def parameters(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """Those of a function, its own or one inside."""
        starred = node.args.vararg or node.args.kwarg
        if starred is not None:
            name = "a lambda" if isinstance(node, ast.Lambda) else repr(own_name(node.name))
            star = "*" if starred is node.args.vararg else "**"
            self.refuse(
                node,
                f"{name} takes {star}{own_name(starred.arg)}: any number of arguments",
                "name each parameter, with a default where it may be left out; pass any number of "
                "values as one tuple",
            )

    def defaults(self) -> None:
        """Reads the values that the parameters have where a call leaves them out."""
        function = self.source.original
        for name, value in defaults_of(function).items():
            self.resolve(self.source.tree, default_name(name), value, f"the default of {name!r}")

    def null_reads(self, tree: ast.FunctionDef) -> None:
        """Marks where a nullable column is kept; a bool that is asked there is refused."""
        nullable = self.analysis.event.nullable
        if not nullable:
            return
        called = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id not in self.locals
            and isinstance(self.lookup(node.func.id), types.FunctionType | functools.partial)
        }
        mark_null_reads(tree, nullable, self.locals, called)

    def node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.name(node)
        if node in self.raising:
            return
        parts = [node, *node.ops] if isinstance(node, ast.Compare) else [node]
        if operations.is_singleton_test(node):
            parts = []
        has_operator = ast.BinOp | ast.AugAssign | ast.UnaryOp | ast.BoolOp
        parts += [node.op] if isinstance(node, has_operator) else []
        found = (_REFUSED.get(type(one)) or operations.refusal(type(one)) for one in parts)
        refused = next(filter(None, found), None)
        # An operator has no line of its own; it is met as part of what it stands in.
        is_target = isinstance(node, ast.List) and not isinstance(node.ctx, ast.Load)
        is_operator = isinstance(node, ast.operator | ast.unaryop | ast.cmpop | ast.boolop)
        if refused is not None and not is_target and not is_operator:
            self.refuse(node, f"{refused[0]} cannot be compiled", refused[1])
        if isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            # Python evaluates the parts of such a target, and does nothing with them.
            if not isinstance(node.target, ast.Name):
                self.refuse(
                    node,
                    "an annotation without a value is on an element or a field",
                    "declare its type in the state, and leave the line out",
                )
        elif isinstance(node, ast.With):
            self.locks(node)
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            self.parameters(node)
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                self.refuse(
                    node,
                    f"{own_name(node.name)!r} has a decorator",
                    "leave it out, and call what it does",
                )
        elif isinstance(node, ast.Call):
            self.call(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)
        elif isinstance(node, ast.Subscript):
            self.item(node)

    def item(self, node: ast.Subscript) -> None:
        """The state and the event have attributes, where dicts have items."""
        of, name = node.value, node.slice
        if len(self.analysis.open) != 1 or not isinstance(of, ast.Name):
            return
        is_text = isinstance(name, ast.Constant) and isinstance(name.value, str)
        if of.id in self.source.parameters[:2] and is_text:
            what = ("the state", "the event")[self.source.parameters.index(of.id)]
            self.refuse(
                node,
                f"{what} has no items",
                f"write {of.id}.{ast.literal_eval(name)}, as of an object",
            )

    def locks(self, node: ast.With) -> None:
        """What a with statement takes is a lock; whether it is one is known with its type."""
        for item in node.items:
            if item.optional_vars is not None or isinstance(item.context_expr, ast.Call):
                self.refuse(
                    node,
                    "a with statement is for the locks of the state",
                    "write with state.locks[i]: and declare locks = ss.locks(n); operators hold no "
                    "other resources",
                )

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

    def static_value(self, node: ast.expr) -> Any:
        """What a name, or an attribute of one, stands for; None: what only a run knows."""
        if isinstance(node, ast.Attribute):
            return getattr(self.static_value(node.value), node.attr, None)
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return None
        value = self.lookup(node.id)
        return None if value is _MISSING else value

    def name(self, node: ast.Name) -> None:
        name = node.id
        if name in self.caught:
            if node not in self.raising and not isinstance(node, CaughtName):
                self.refuse(
                    node,
                    f"{name!r} is a caught exception, which can only be raised again, or emitted "
                    "as text",
                    f"write raise, raise {name}, raise SomeError(...) from {name}, or in emit "
                    f"str({name}); catch each class in a clause of its own to tell them apart",
                )
            return
        if name in self.locals:
            return
        value = self.lookup(name)
        is_told = node in self.raising and value is not _MISSING
        if is_told and not self.analysis.catches and name not in self.told:
            self.told[name] = as_now(value)
        if name in self.resolved:
            return
        if node in self.raising and not isinstance(value, int | float | str):
            is_called = isinstance(value, types.FunctionType | functools.partial)
            if is_told and (self.analysis.catches or not is_called):
                self.resolved[name] = value
            return
        if value is _MISSING:
            known = {*self.locals, *self.source.original.__globals__, *vars(builtins)}
            hint = meant(name, sorted(known))
            if name == "state" and not self.analysis.shapes and not self.analysis.has_records:
                hint = "; of an operator, give it state= and a first parameter for it"
            self.refuse(
                node, f"name {name!r} is not defined", f"define it before the operator{hint}"
            )
        self.resolve(node, name, value, repr(name))

    def resolve(self, node: ast.AST, name: str, value: Any, what: str) -> None:
        """Takes a global's value, or a default's, under a name; refuses what cannot be compiled."""
        if isinstance(value, types.ModuleType):
            root = value.__name__.split(".")[0]
            if root in _FORBIDDEN_MODULES:
                self.refuse(node, f"module {root!r} cannot be used", FORBIDDEN_MODULES[root])
            if value not in (math, np):
                self.refuse(
                    node,
                    f"module {value.__name__!r} is not a value",
                    "call a function of it, or read a number",
                )
        elif isinstance(value, types.FunctionType):
            if value in self.analysis.open:
                self.refuse(node, f"{name!r} calls itself", "write the recursion as a loop")
        elif isinstance(value, functools.partial):
            self.resolve(node, f"{name}.func", value.func, f"what {what} calls")
        elif self.is_supported_callable(value) or is_row(value):
            pass
        elif is_record(value):
            self.analysis.has_records = True
            fields = record_fields(value)
            self.analysis.strings += [one.default for one in fields if type(one.default) is str]
        elif not frozen.is_container(value) and is_constant(value):
            value = frozen.own_scalar(value)
            self.analysis.strings += frozen.strings_in(value)
            self.constants[name] = value
        elif builtin_functions.is_forbidden(value) and value is getattr(builtins, name, None):
            hint = builtin_functions.REFUSED[name].hint
            where = "stand here" if name == "str" else "be used in an operator"
            self.refuse(node, f"{name}() cannot {where}", hint)
        elif frozen.is_container(value) and of_constant(value) is None:
            value = self.frozen(node, value, what)
            self.constants[name] = value
        elif (library := of_library(value)) is not None:
            self.refuse(node, f"{what} {library[0]}", library[1])
        elif isinstance(value, type) and value.__module__ != "builtins":
            self.refuse(node, *of_class(value, what))
        elif (own := of_constant(value)) is not None:
            is_one = type(value).__name__ == own[0]
            self.refuse(
                node,
                f"{what} {'is' if is_one else 'holds a'} {own[0]}, which cannot be compiled",
                own[1],
            )
        else:
            self.refuse(
                node,
                f"{what} is {type(value).__name__}, which cannot be compiled",
                "use numbers, strings, tuples of them, and plain functions",
            )
        self.resolved[name] = value

    def frozen(self, node: ast.AST, value: Any, what: str) -> Any:
        """A copy of what a module holds."""

        def refuse(problem: str, hint: str) -> NoReturn:
            self.refuse(node, f"{what}: {problem}", hint)

        found = frozen_types.conformed(frozen.freeze(value, refuse), refuse)
        self.analysis.strings += frozen.strings_in(found)
        self.analysis.reads_frozen = True
        if not isinstance(found, frozen.FrozenArray):
            self.analysis.uses_arena = True
        return found

    @staticmethod
    def is_supported_callable(value: Any) -> bool:
        return (
            builtin_name(value) is not None
            or math_name(value) is not None
            or (numpy_name(value) is not None)
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
        if name.startswith(PREFIX):
            return getattr(standard_library, name.removeprefix(PREFIX))
        if name in function.__globals__:
            return function.__globals__[name]
        if "." in name:
            module, _, attribute = name.rpartition(".")
            return getattr(self.lookup(module), attribute, _MISSING)
        return getattr(builtins, name, _MISSING)

    def call(self, node: ast.Call) -> None:
        if node.keywords and any(keyword.arg is None for keyword in node.keywords):
            self.refuse(node, "a call with **", "write the arguments out")
        callee = node.func
        if node.args and isinstance(node.args[0], ast.Name) and isinstance(callee, ast.Name):
            self.text_of_caught(node, callee.id, node.args[0])
        if not isinstance(callee, ast.Name | ast.Attribute | ast.Lambda):
            self.refuse(node, "only named functions can be called", "call a function by its name")
        if isinstance(callee, ast.Attribute) and callee.attr == "is_null":
            self.is_null(node)
        if isinstance(callee, ast.Attribute) and callee.attr in CHANGING:
            held = self.static_value(callee.value)
            if isinstance(held, list | dict | set) and not isinstance(callee.value, ast.Attribute):
                self.refuse(node, *FROZEN)

    def text_of_caught(self, node: ast.Call, called: str, given: ast.Name) -> None:
        """A text that is asked of a caught exception where none can stand."""
        name = given.id
        if name not in self.caught or given in self.raising or isinstance(given, CaughtName):
            return
        if called in self.locals or called not in (*_TEXTS_OF_CAUGHT, "type"):
            return
        self.refuse(
            node,
            f"{called}({name}) reads a caught exception, which can only be emitted as text: "
            "compiled code cannot keep it or compute with it",
            f"emit it, emit({_TEXTS_OF_CAUGHT.get(called, 'type({}).__name__').format(name)}), or "
            "catch each class in a clause of its own and write a text there, like "
            'state.x = "ValueError"',
        )

    def is_null(self, node: ast.Call) -> None:
        event = self.analysis.event
        if self.analysis.is_on_timer:
            self.refuse(
                node,
                "a timer has no columns that could be null",
                f"it has {', '.join(TIMER_NAMES)}; keep what on_timer needs of an event in the "
                "state, and state.x.get(timer.key) is None where it is not there",
            )
        name = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
            self.refuse(
                node,
                "is_null takes the name of one column, as a literal",
                'write event.is_null("x")',
            )
        self.analysis.attributes.add(name.value)
        if name.value not in event.names:
            self.refuse(
                node,
                f"the event has no column {name.value!r}",
                names_it_has(name.value, event.names),
            )
        if name.value not in event.nullable:
            declared = event.columns[event.names.index(name.value)]
            what, way = f"column {name.value!r}", f"event={{{name.value!r}: ss.nullable(...)}}"
            if name.value in self.analysis.of_inputs:
                port, _, of = name.value.partition(".")
                what = f"column {of!r} of input {port!r}"
                way = f"inputs={{{port!r}: {{{of!r}: ss.nullable(...)}}}}"
            self.refuse(
                node,
                f"{what} is not nullable: it is declared {declared}",
                f"declare it as {way}",
            )

    def attribute(self, node: ast.Attribute) -> None:
        self.analysis.attributes.add(node.attr)
        if node.attr == "timestamp":
            self.analysis.reads_timestamp = True
        if isinstance(node.value, ast.Name) and node.value.id not in self.locals:
            module = self.lookup(node.value.id)
            if module is np and node.attr == "random":
                self.refuse(node, "np.random cannot be used", FORBIDDEN_MODULES["random"])
            known = (*NUMPY, *OF_ARRAYS, *numbers.NUMPY_CONSTANTS)
            if module is np and node.attr not in known:
                # NumPy 1 has not all of them, and warns of some.
                functions = [one for one in known if isinstance(vars(np).get(one), np.ufunc)]
                self.refuse(node, *of_numpy(node.attr, [*functions, "clip", *OF_ARRAYS]))
            if (
                module is math
                and node.attr not in (*MATH, *OF_SEVERAL)
                and (node.attr not in numbers.MATH_CONSTANTS)
            ):
                self.refuse(
                    node,
                    f"math.{node.attr} is not supported",
                    f"supported are: {', '.join(sorted([*MATH, *OF_SEVERAL]))}",
                )


def _is_enum(value: Any) -> bool:
    return isinstance(value, frozen.EnumMembers) or (
        isinstance(value, type) and issubclass(value, enum.Enum)
    )


class CheckOfDottedNames(ast.NodeTransformer):
    """What a user's module has becomes a name with a dot: a global like any other."""

    def __init__(self, check: Check) -> None:
        self.check = check

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Not refused as other items: an enum's ``Side["BUY"]``, which becomes ``Side.BUY``."""
        self.generic_visit(node)
        of, name = node.value, node.slice
        if not isinstance(of, ast.Name) or not isinstance(name, ast.Constant):
            return node
        if not isinstance(name.value, str) or not self.of_enum(of.id):
            return node
        member = ast.Attribute(ast.Name(of.id, ast.Load()), name.value, ast.Load())
        return self.visit(ast.fix_missing_locations(ast.copy_location(member, node)))

    def of_enum(self, name: str) -> bool:
        return name not in self.check.locals and _is_enum(self.check.lookup(name))

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Not refused as other ``is``: ``x is Side.BUY`` of an enum, which becomes ``==``.

        A member of an enum is compared by value: there is one object of it.
        """
        self.generic_visit(node)
        for at, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            owner = right.id.rpartition(".")[0] if isinstance(right, ast.Name) else ""
            if isinstance(op, ast.Is | ast.IsNot) and owner and self.of_enum(owner):
                node.ops[at] = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        owner = node.value
        if not isinstance(owner, ast.Name) or owner.id in self.check.locals:
            return node
        name = f"{owner.id}.{node.attr}"
        if name not in self.check.source.original.__globals__:  # as it is where it was pickled
            module = self.check.lookup(owner.id)
            is_method = isinstance(getattr(module, node.attr, None), types.FunctionType)
            if frozen.is_holder(module) and not node.attr.startswith("__") and not is_method:
                if not hasattr(module, node.attr):
                    self.check.refuse(node, f"{owner.id!r} has no {node.attr!r}", "write its name")
                return ast.copy_location(ast.Name(name, node.ctx), node)
            if not isinstance(module, types.ModuleType) or module in (math, np):
                return node
            root = module.__name__.split(".")[0]
            if root in _FORBIDDEN_MODULES or self.check.lookup(name) is _MISSING:
                return node
        return ast.copy_location(ast.Name(name, node.ctx), node)


def default_name(parameter: str) -> str:
    """The global that a parameter's default is kept in."""
    return f"__ss_default_{parameter}"


def is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(is_constant(element) for element in value)
    if value is None or isinstance(value, bool | np.bool_ | float | np.float16 | np.float32 | str):
        return True
    if isinstance(value, np.timedelta64):  # which NumPy has among the integers
        return False
    return isinstance(value, int | np.integer) and -(2**63) <= int(value) < 2**64


def builtin_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    if name in builtin_functions.BUILTINS and getattr(builtins, name, None) is value:
        return str(name)
    return None


def math_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    return name if name in (*MATH, *OF_SEVERAL) and getattr(math, name, None) is value else None


def numpy_name(value: Any) -> str | None:
    name = getattr(value, "__name__", None)
    if isinstance(value, type) and name in NUMPY and getattr(np, name, None) is value:
        return str(name)
    return None
