"""What can neither be compiled nor computed before the operator runs: why, and what to write."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from typing import NoReturn

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_times import EVENT, STATE
from specstream.compiler.facts.dates_and_decimals import as_number
from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.facts.value_types import ANY, STR, Type
from specstream.compiler.language.hints import OF_CACHED
from specstream.compiler.staging.staged_values import StagedValues
from specstream.declarations.options import nearest

__all__ = ["StagingRefusals"]


class StagingRefusals(StagedValues):
    """Refuses expressions of one function, if it is certain that none can compute them.

    Attributes:
        says: what is gone through is what an exception is made of.
    """

    says = False

    def cannot(self, node: ast.expr, depends: int, given: Type) -> None:
        """Refuses what neither Python nor compiled code can compute, if that is certain."""
        if depends == EVENT:
            self.unknown(node, given)
        if depends != STATE or self.says:
            return
        if isinstance(node, ast.JoinedStr):
            self.refuse(
                node,
                f"a formatted string cannot be used here: {self.culprit(node)} is known only when "
                "the event runs",
                "format what depends on the event alone, or emit the string into a column that is "
                'declared str: emit(f"...")',
            )
        parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        found = [self.alone.found.get(one) for one in parts]
        if any(one and one.depends < STATE and of.required(one.type) == STR for one in found):
            self.refuse_list(node)
            self.refuse(
                node,
                f"{ast.unparse(node)}, of a string, cannot be computed before the operator runs: "
                f"{self.culprit(node)} is known only when the event runs",
                "make it depend on the event alone; strings of the state can be compared, sorted, "
                "measured, and looked for with `in`, startswith and endswith",
            )

    def refuse_list(self, node: ast.expr) -> None:
        """A text of a list that the operator makes: only Python has the texts of its elements."""
        for one in ast.walk(node):
            values = [
                statement.value
                for statement in ast.walk(self.source.tree)
                if isinstance(one, ast.Name)
                and isinstance(statement, ast.Assign)
                and any(ast.dump(of) == ast.dump(_stored(one)) for of in statement.targets)
            ]
            if values and all(isinstance(value, ast.List | ast.ListComp) for value in values):
                assert isinstance(one, ast.Name)
                self.refuse(
                    node,
                    f"{ast.unparse(node)} needs the texts of {one.id!r}, a list that is built "
                    "while the event runs",
                    "write the list there, like ', '.join([event.x, event.y]), or make the text in "
                    "a plain function at module level, text = f(event.x, event.y)",
                )

    def culprit(self, node: ast.expr) -> str:
        """The first part that depends on more than the event, as it was written."""
        for part in ast.iter_child_nodes(node):
            found = self.alone.found.get(part) if isinstance(part, ast.expr) else None
            if found is not None and found.depends == STATE:
                assert isinstance(part, ast.expr)
                is_whole = isinstance(part, ast.Attribute | ast.Subscript | ast.Call | ast.Name)
                return ast.unparse(part) if is_whole else self.culprit(part)
        return ast.unparse(node)

    def unknown(self, node: ast.expr, given: Type) -> NoReturn:
        text = ast.unparse(node)
        self.refuse_misspelt(node)
        part = node.func if isinstance(node, ast.Call) else node
        if isinstance(part, ast.Attribute) and of.is_number(self.alone.of(part.value).type):
            of_what = ast.unparse(part.value)
            self.refuse(
                node,
                f"{of_what} is a number, and has no {part.attr!r}",
                f"of a column that is a timestamp or date, write ss.when({of_what}).{part.attr}",
            )
        called = self.alone.constant(node.func) if isinstance(node, ast.Call) else None
        if isinstance(called, functools._lru_cache_wrapper) and given == ANY:
            self.refuse(node, f"{text} {OF_CACHED[0]}", OF_CACHED[1])
        if not of.is_known(given):
            self.refuse_helper(node)
            self.refuse(
                node,
                f"{text} is computed by Python before the operator runs, and the type of its "
                "result is not known",
                "annotate it where it is assigned, like name: float = ..., or call a function "
                "marked @ss.pure that says what it returns",
            )
        self.refuse(
            node,
            f"{text} is a {of.described(given)}, which only Python has",
            as_number(given)
            or "take what you need out of it, as an int, float, bool, str, or a tuple or list of "
            "these",
        )

    def refuse_helper(self, node: ast.expr) -> None:
        """A function of the user's, which could say what it returns."""
        waiting, met = [node], set[str]()
        while waiting:
            part: ast.AST = waiting.pop()
            waiting += [one for one in ast.iter_child_nodes(part) if isinstance(one, ast.expr)]
            binding = self.alone.bindings.get(part.id) if isinstance(part, ast.Name) else None
            if isinstance(part, ast.Name) and binding is not None and part.id not in met:
                met.add(part.id)
                waiting.append(binding.value)
            function = self.alone.constant(part.func) if isinstance(part, ast.Call) else None
            is_plain = isinstance(function, types.FunctionType)
            if is_plain and function in self.staging.returns.reasons:
                filename, line, culprit = self.staging.returns.reasons[function]
                where = "" if filename == self.source.filename else f" of {filename}"
                arguments = ", ".join(inspect.signature(function).parameters)
                self.refuse(
                    node,
                    f"{function.__name__}() is called by Python before the operator runs, and its "
                    f"return type is not known: the type of {culprit} in line {line}{where} is not",
                    f"annotate it where it is defined, like def {function.__name__}({arguments}) "
                    "-> float, or int, bool, str, a tuple of these, or one of these or None",
                )

    def check_field(self, node: ast.Attribute) -> None:
        """A named tuple of the event without a field that it is asked for is refused."""
        owner = self.alone.found.get(node.value)
        given = None if owner is None else of.required(owner.type)
        if given is None or not of.is_record(given) or hasattr(given.cls, node.attr):
            return
        names: tuple[str, ...] = getattr(given.cls, "_fields", ())
        near = nearest(node.attr, names)
        shown = ast.unparse(node.value)
        self.refuse(
            node,
            f"{shown!r} is a {of.described(given)}, which has no {node.attr!r}",
            f"it has {', '.join(names)}" if near is None else f"write {shown}.{near}",
        )

    def refuse_misspelt(self, node: ast.expr) -> None:
        """A name that a module has not: Python would say so only when the operator gets there."""
        for part in ast.walk(node):
            if not (isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)):
                continue
            module = look_up(self.source.original, part.value.id)
            if isinstance(module, types.ModuleType) and not hasattr(module, part.attr):
                near = nearest(part.attr, dir(module))
                self.refuse(
                    node,
                    f"module {module.__name__!r} has no {part.attr!r}",
                    f"write {part.value.id}.{near}"
                    if near is not None
                    else "write a name that it has",
                )


def _stored(name: ast.Name) -> ast.Name:
    return ast.Name(name.id, ast.Store())
