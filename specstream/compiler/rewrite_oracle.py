"""The syntax tree of a function, rewritten for the oracle.

Literals become numbers that wrap and texts that are codes; builtins and modules become those of
:mod:`specstream.compiler.oracle_view` and :mod:`specstream.compiler.numbers`.
"""

from __future__ import annotations

import ast
import math
import types
from typing import Any

import numpy as np

from specstream.columns.strings import string_code
from specstream.compiler import numbers, oracle_view
from specstream.compiler.check import builtin_name, math_name, numpy_name
from specstream.compiler.exceptions import catches_anything, caught_classes, steps_aside
from specstream.compiler.rewrite import Rewriter, expand_augmented, oracle_constant
from specstream.compiler.text import Text
from specstream.declarations.updates import update_name
from specstream.errors import SpecstreamError

__all__ = ["OracleRewriter"]

_ORACLE_MATH = numbers.OracleMath()
_ORACLE_NUMPY = numbers.OracleNumpy()


class OracleRewriter(Rewriter):
    def rewrite(self) -> ast.FunctionDef:
        self.finals = 0
        namespace = self.source.oracle_namespace
        for name, value in self.check.resolved.items():
            namespace[name] = self.freeze(name, value)
        return super().rewrite()

    def freeze(self, name: str, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            is_update = update_name(value) is not None
            return value if is_update else self.analysis.function(value)[1]
        if value is math:
            return _ORACLE_MATH
        if value is np:
            return _ORACLE_NUMPY
        builtin, mathematical, numeric = (
            builtin_name(value),
            math_name(value),
            numpy_name(value),
        )
        if builtin is not None:
            return numbers.ORACLE_BUILTINS[builtin]
        if mathematical is not None:
            return getattr(_ORACLE_MATH, mathematical)
        if numeric is not None:
            return getattr(_ORACLE_NUMPY, numeric)
        return oracle_constant(value) if name in self.check.constants else value

    def visit_Raise(self, node: ast.Raise) -> Any:
        if self.analysis.catches:
            for made in (node.exc, node.cause):
                if isinstance(made, ast.Call):
                    made.args = [self.said(one) for one in made.args]
                    for keyword in made.keywords:
                        keyword.value = self.said(keyword.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self.visit(node.test)
        if self.analysis.catches and node.msg is not None:
            node.msg = self.said(node.msg)
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
        template = ast.parse(
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
            text = Text(string_code(value))
            name = f"__ss_text_{text.code}".replace("-", "minus_")
            self.source.oracle_namespace[name] = text
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        if type(value) is not int:
            return node
        name = f"__ss_constant_{value}".replace("-", "minus_")
        self.source.oracle_namespace[name] = numbers.to_oracle(value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)

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
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        self.source.oracle_namespace["__ss_by_value"] = oracle_view.by_value
        for at, (op, container) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(op, ast.In | ast.NotIn):
                call = ast.Call(ast.Name("__ss_by_value", ast.Load()), [container], [])
                node.comparators[at] = ast.copy_location(call, container)
        return node

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
        if type(node.op) not in numbers.ORACLE_OPERATORS:
            return self.generic_visit(node)
        namespace = self.source.oracle_namespace
        namespace |= {"__ss_to_power": oracle_view.to_power, "__ss_slice": slice}
        assert isinstance(node.op, ast.Pow)

        def combine(load: ast.expr, value: ast.expr) -> ast.expr:
            return ast.Call(ast.Name("__ss_to_power", ast.Load()), [load, value], [])

        return [self.visit(part) for part in expand_augmented(node, combine)]
