"""The syntax tree of a function, rewritten for the oracle.

Literals become numbers that wrap and texts that are codes; builtins and modules become those of
:mod:`specstream.compiler.oracle_objects.view` and :mod:`specstream.compiler.language.numbers`.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from specstream.columns.strings import string_code
from specstream.compiler.facts.bools import Bools
from specstream.compiler.facts.refused_constructs import (
    builtin_name,
    default_name,
    math_name,
    numpy_name,
)
from specstream.compiler.frontend.error_texts import ErrorTexts
from specstream.compiler.frontend.nullable_flows import is_none_test, is_null_read
from specstream.compiler.frontend.scopes import own_names
from specstream.compiler.frontend.try_and_raise import (
    catches_anything,
    caught_classes,
    change_arguments,
    steps_aside,
)
from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.operations import is_singleton_test
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.standard_library import by_argument
from specstream.compiler.language.text import Text
from specstream.compiler.library.event_lists import ItemRead, RecordMade, oracle_item
from specstream.compiler.oracle.common_rewriting import (
    Rewriter,
    expand_augmented,
    oracle_constant,
    targets_in,
)
from specstream.compiler.oracle.raise_arguments import RaiseArguments
from specstream.compiler.oracle_objects import local as oracle_local
from specstream.compiler.oracle_objects import nulls as oracle_nulls
from specstream.compiler.oracle_objects import view as oracle_view
from specstream.compiler.oracle_objects.forms import CaughtName, EmittedForm, Formed
from specstream.compiler.oracle_objects.modules import OracleMath, OracleNumpy
from specstream.compiler.oracle_objects.records import maker
from specstream.compiler.oracle_objects.reductions import floats
from specstream.declarations.containers import record_shape
from specstream.declarations.records import is_record
from specstream.declarations.updates import update_name
from specstream.errors import SpecstreamError

__all__ = ["ORACLE_MATH", "ORACLE_NUMPY", "OracleRewriter"]

ORACLE_MATH = OracleMath()
ORACLE_NUMPY = OracleNumpy()


class OracleRewriter(Rewriter):
    def rewrite(self) -> ast.FunctionDef:
        self.finals = 0
        self.bools = self.where_bools_may_be()
        namespace = self.source.oracle_namespace
        for name, value in self.check.resolved.items():
            namespace[name] = self.freeze(name, value)
        tree = super().rewrite()
        arguments = tree.args
        positional = [*arguments.posonlyargs, *arguments.args]
        with_default = positional[len(positional) - len(arguments.defaults) :]
        arguments.defaults = [self.default(one) for one in with_default]
        arguments.kw_defaults = [
            default and self.default(one)
            for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        own_names(tree)
        return tree

    @staticmethod
    def default(parameter: ast.arg) -> ast.expr:
        return ast.copy_location(ast.Name(default_name(parameter.arg), ast.Load()), parameter)

    def freeze(self, name: str, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            is_update = update_name(value) is not None
            if is_update:
                return value
            return by_argument(
                value, oracle_local.is_mapping, lambda one: self.analysis.function(one)[1]
            )
        if isinstance(value, functools.partial):
            arguments = map(oracle_constant, value.args)
            named = {one: oracle_constant(argument) for one, argument in value.keywords.items()}
            return functools.partial(self.freeze(name, value.func), *arguments, **named)
        if is_record(value):
            return maker(record_shape(value), oracle_constant)
        if value is math:
            return ORACLE_MATH
        if value is np:
            return ORACLE_NUMPY
        builtin, mathematical, numeric = (
            builtin_name(value),
            math_name(value),
            numpy_name(value),
        )
        if builtin is not None:
            return numbers.ORACLE_BUILTINS[builtin]
        if mathematical is not None:
            return getattr(ORACLE_MATH, mathematical)
        if numeric is not None:
            return getattr(ORACLE_NUMPY, numeric)
        return oracle_constant(value) if name in self.check.constants else value

    def visit_EmittedForm(self, node: EmittedForm) -> Any:
        self.source.oracle_namespace["__ss_formed"] = Formed
        parts = [self.visit(part) for part in node.elts]
        number = ast.copy_location(ast.Constant(node.number), node)
        name = ast.Name("__ss_formed", ast.Load())
        return ast.copy_location(ast.Call(name, [number, *parts], []), node)

    def visit_ItemRead(self, node: ItemRead) -> Any:
        return self.ours(oracle_item, node.status, node.value, at=node)

    def visit_RecordMade(self, node: RecordMade) -> Any:
        self.source.oracle_namespace[node.name] = node.record
        made = ast.copy_location(ast.Name(node.name, ast.Load()), node)
        return ast.copy_location(ast.Call(made, list(map(self.visit, node.elts)), []), node)

    def visit_CaughtName(self, node: CaughtName) -> Any:
        return self.ours(ErrorTexts.known, ast.Name(node.id, ast.Load()), at=node)

    def told(self, node: ast.expr | None, error: Any) -> ast.expr | None:
        """An exception that somebody may ask for its text; None: nobody could tell it."""
        if not self.analysis.tells or node is None or error is None:
            return None
        texts, names = self.analysis.texts, self.check.caught
        site, parts = texts.site(node, error, names, self.source.filename)
        if not site:
            return None
        values = [self.visit(part.value) for part in parts]
        return self.ours(texts.raised, ast.Constant(site), *values, at=node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        raised = self.told(node.exc, None if called is None else self.check.static_value(called))
        for made in (node.exc if raised is None else None, node.cause):
            if isinstance(made, ast.Call):
                self.make_of_python(made)
        if raised is not None:
            node.exc = raised
        return node

    def make_of_python(self, made: ast.Call) -> None:
        """Rewrites the arguments of what makes an exception: a class, or a function."""
        function = self.check.static_value(made.func)
        if isinstance(function, types.FunctionType) and not self.analysis.catches:
            if self.raising.is_of_operators(made):
                self.told_elsewhere(made)
                return
            made.func = self.raising.visit(made.func)
        change_arguments(made, self.says)

    @property
    def says(self) -> Callable[[ast.expr], Any]:
        """What is done to each value that an exception is made of."""
        if self.analysis.catches:
            return self.said
        return self.raising.argument

    @property
    def raising(self) -> RaiseArguments:
        parameters = self.source.parameters
        kinds = self.analysis.kinds_of(self.source.original)
        given = {name for name in parameters if kinds.get(name) in ("state", "event", "emit")}
        return RaiseArguments(
            self.told_elsewhere, self.ours, self.bound, self.check.told, frozenset(given)
        )

    def told_elsewhere(self, node: ast.expr) -> Any:
        """What stands behind raise and goes on with an operator's values."""
        for part in ast.walk(node):
            name = part.id if isinstance(part, ast.Name) else ""
            if name in self.check.told:
                namespace = self.source.oracle_namespace
                namespace.setdefault(name, self.freeze(name, self.check.told[name]))
        return self.visit(node)

    def bound(self, name: str, value: Any, at: ast.AST) -> ast.expr:
        """A name for a value."""
        self.source.oracle_namespace[name] = value
        made: ast.expr = ast.copy_location(ast.Name(name, ast.Load()), at)
        return made

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self.visit(node.test)
        message = ast.Call(node.test, [] if node.msg is None else [node.msg], [])
        raised = self.told(ast.copy_location(message, node), AssertionError)
        if raised is not None:
            passing = ast.copy_location(ast.Pass(), node)
            failing = ast.copy_location(ast.Raise(raised, None), node)
            return ast.copy_location(ast.If(node.test, [passing], [failing]), node)
        if node.msg is not None:
            node.msg = self.says(node.msg)
        return node

    def said(self, value: ast.expr) -> Any:
        """What an exception is made of: its own texts stay texts."""
        if isinstance(value, ast.JoinedStr):
            for part in value.values:
                if isinstance(part, ast.FormattedValue):
                    part.value = self.visit(part.value)
            return value
        return value if isinstance(value, ast.Constant) else self.visit(value)

    def visit_Try(self, node: ast.Try) -> Any:
        """What is none of the operator's own, such as Ctrl-C, passes handlers and ``finally``."""
        self.source.oracle_namespace |= {"__ss_own": SpecstreamError, "__ss_aside": steps_aside}
        final = self.statements(node.finalbody)
        node.body = self.statements(node.body) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self.statements(node.orelse)
        for handler in node.handlers:
            handler.body = self.statements(handler.body) or [ast.copy_location(ast.Pass(), handler)]
            errors: tuple[type[BaseException], ...] = (Exception,)
            if handler.type is not None:
                errors = caught_classes(handler.type, self.check.static_value) or ()
            if catches_anything(errors):
                self.source.oracle_namespace["__ss_Exception"] = Exception
                handler.type = ast.copy_location(ast.Name("__ss_Exception", ast.Load()), handler)
        if node.handlers:
            own = ast.copy_location(ast.Name("__ss_own", ast.Load()), node)
            again = ast.copy_location(ast.Raise(None, None), node)
            passing = ast.copy_location(ast.ExceptHandler(own, None, [again]), node)
            node.handlers.insert(0, passing)
        if not node.finalbody:
            return node
        node.finalbody = []
        return self.finally_(node, final)

    def finally_(self, node: ast.Try, final: list[ast.stmt]) -> list[ast.stmt]:
        self.finals += 1
        aside, error = f"__ss_aside_{self.finals}", f"__ss_left_{self.finals}"
        template = parse(
            f"{aside} = False\n"
            "try:\n"
            "    pass\n"
            f"except __ss_BaseException as {error}:\n"
            f"    {aside} = __ss_aside({error})\n"
            "    raise\n"
            "finally:\n"
            f"    if not {aside}:\n"
            "        pass\n"
        ).body
        self.source.oracle_namespace["__ss_BaseException"] = BaseException
        around, test = template[1], template[1].finalbody[0]  # type: ignore[attr-defined]
        for statement in template:
            for part in ast.walk(statement):
                if hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        around.body = [node] if node.handlers else node.body  # type: ignore[attr-defined]
        test.body = final or test.body
        return template

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, str):
            self.analysis.strings.append(value)
            text = Text(string_code(value), value)
            name = f"__ss_text_{text.code}".replace("-", "minus_")
            self.source.oracle_namespace[name] = text
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        if type(value) is not int:
            return node
        name = f"__ss_constant_{value}".replace("-", "minus_")
        self.source.oracle_namespace[name] = numbers.to_oracle(value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_MatchValue(self, node: ast.MatchValue) -> Any:
        """A pattern takes literals and dotted names only: a string's code gets one."""
        value = node.value
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
        if is_text or isinstance(value, ast.Name):
            replaced = self.visit(value)
            assert isinstance(replaced, ast.Name)
            namespace = self.source.oracle_namespace
            constants = namespace.setdefault("__ss_patterns", types.SimpleNamespace())
            setattr(constants, replaced.id, namespace[replaced.id])
            holder = ast.copy_location(ast.Name("__ss_patterns", ast.Load()), value)
            node.value = ast.copy_location(ast.Attribute(holder, replaced.id, ast.Load()), value)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "is_null":
            node.func.value = self.visit(node.func.value)
            return node  # its argument is the name itself, not the code of a string
        if self.number_in_text(node) is not None:
            return node
        name = self.updated_scalar(node)
        if name is not None:
            container, _, *values = node.args
            node.args = [self.visit(container), name, *map(self.visit, values)]
            return node
        if hasattr(node, "of_floats"):
            node.args = [self.ours(floats, *node.args, at=node)]
        return self.generic_visit(node)

    def container(self, node: ast.List | ast.Dict | ast.Set) -> Any:
        """A display, made one of the oracle's own."""
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return node
        name = type(node).__name__
        self.source.oracle_namespace[f"__ss_{name}"] = getattr(oracle_local, name)
        given: ast.expr = node
        if isinstance(node, ast.Set):  # Python's own would lose their order
            given = ast.Tuple(node.elts, ast.Load())
        elif isinstance(node, ast.Dict):
            pairs: list[ast.expr] = [
                ast.Starred(ast.Call(ast.Attribute(value, "items", ast.Load()), [], []), ast.Load())
                if key is None
                else ast.Tuple([key, value], ast.Load())
                for key, value in zip(node.keys, node.values, strict=True)
            ]
            given = ast.Tuple(pairs, ast.Load())
        call = ast.Call(ast.Name(f"__ss_{name}", ast.Load()), [given], [])
        return ast.copy_location(call, node)

    visit_List = visit_Dict = visit_Set = container

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Any:
        """A comprehension, made one of the oracle's own as its items come."""
        self.generic_visit(node)
        name = type(node).__name__.removesuffix("Comp")
        self.source.oracle_namespace[f"__ss_{name}"] = getattr(oracle_local, name)
        item: ast.expr
        if isinstance(node, ast.DictComp):
            item = ast.Tuple([node.key, node.value], ast.Load())
        else:
            item = node.elt
        items = ast.copy_location(ast.GeneratorExp(item, node.generators), node)
        call = ast.Call(ast.Name(f"__ss_{name}", ast.Load()), [items], [])
        return ast.copy_location(call, node)

    visit_ListComp = visit_SetComp = visit_DictComp = comprehension

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if not is_null_read(node):
            return node
        return self.ours(oracle_nulls.null_or_value, node.value, ast.Constant(node.attr), at=node)

    def ours(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.expr:
        """A call of a function of ours."""
        name = f"__ss_{function.__name__}"
        self.source.oracle_namespace[name] = function
        call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
        return ast.fix_missing_locations(ast.copy_location(call, at))

    def none_test(self, node: ast.Compare, tested: ast.expr) -> ast.expr:
        """``x is None``, where x may be a null of a column."""
        found: ast.expr
        if isinstance(tested, ast.Attribute):
            name = ast.Constant(tested.attr)
            found = self.ours(
                oracle_nulls.attribute_is_none, self.visit(tested.value), name, at=node
            )
        else:
            found = self.ours(oracle_nulls.is_none, self.visit(tested), at=node)
        if isinstance(node.ops[0], ast.IsNot | ast.NotEq):
            found = ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        return found

    def visit_Compare(self, node: ast.Compare) -> Any:
        """What may be a tuple is compared by value."""
        tested = is_none_test(node)
        if tested is not None:
            return self.none_test(node, tested)
        if is_singleton_test(node):
            truth = node.comparators[0]
            found = self.ours(oracle_view.is_truth, self.visit(node.left), truth, at=node)
            is_not = isinstance(node.ops[0], ast.IsNot)
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node) if is_not else found
        self.generic_visit(node)
        self.source.oracle_namespace["__ss_by_value"] = oracle_view.by_value
        operands = [node.left, *node.comparators]
        for at, op in enumerate(node.ops):
            pair = operands[at : at + 2]
            if isinstance(op, ast.In | ast.NotIn):
                operands[at + 1] = self.by_value(pair[1])
            elif not any(map(self.is_number, pair)):
                operands[at : at + 2] = map(self.by_value, pair)
        node.left, *node.comparators = operands
        return node

    def is_number(self, node: ast.expr) -> bool:
        """Whether it is written out; a tuple is never compared with a number."""
        name = node.id if isinstance(node, ast.Name) else ""
        return isinstance(self.source.oracle_namespace.get(name), int | float | Text)

    def by_value(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "__ss_by_value":
            return node
        call = ast.Call(ast.Name("__ss_by_value", ast.Load()), [node], [])
        return ast.copy_location(call, node)

    def where_bools_may_be(self) -> Bools:
        names = {name for name, column in self.analysis.event if column.kind != "bool"}
        names |= self.analysis.numeric_fields
        counting = {
            name
            for name, value in self.check.resolved.items()
            if value in (int, float, len, abs, round) and name not in self.check.locals
        }
        return Bools(self.source.tree, names, counting)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        operation = OF_BOOLS.get(type(node.op)) if self.bools.may_be(node.left) else None
        self.generic_visit(node)
        if operation is not None:
            return self.called(f"__ss_bool_{type(node.op).__name__}", operation, node)
        return self.function(node, node.left, node.right)

    def called(self, name: str, function: Any, node: ast.BinOp) -> ast.expr:
        self.source.oracle_namespace[name] = function
        call = ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])
        return ast.copy_location(call, node)

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

    def visit_Assign(self, node: ast.Assign) -> Any:
        """What a star takes is a list of the oracle's."""
        self.generic_visit(node)
        parts = [part for target in node.targets for part in targets_in(target)]
        starred = [one.value for one in parts if isinstance(one, ast.Starred)]
        if not starred:
            return node
        self.source.oracle_namespace["__ss_List"] = oracle_local.List
        statements: list[ast.stmt] = [node]
        for target in starred:
            loaded = copy.deepcopy(target)
            for part in ast.walk(loaded):
                if isinstance(part, ast.Name | ast.Attribute | ast.Subscript) and part is loaded:
                    part.ctx = ast.Load()
            call = ast.Call(ast.Name("__ss_List", ast.Load()), [loaded], [])
            made = ast.copy_location(ast.Assign([target], call), node)
            statements.append(ast.fix_missing_locations(made))
        return statements

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if type(node.op) not in numbers.ORACLE_OPERATORS:
            return self.generic_visit(node)
        namespace = self.source.oracle_namespace
        namespace |= {"__ss_to_power": oracle_view.to_power, "__ss_slice": slice}
        assert isinstance(node.op, ast.Pow)

        def combine(load: ast.expr, value: ast.expr) -> ast.expr:
            return ast.Call(ast.Name("__ss_to_power", ast.Load()), [load, value], [])

        return [self.visit(part) for part in expand_augmented(node, combine)]
