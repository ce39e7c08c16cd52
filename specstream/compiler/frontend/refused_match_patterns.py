"""Patterns of ``match`` that are refused, of classes and of dicts: why, and what to write."""

from __future__ import annotations

import ast
import copy

__all__ = ["refused_pattern"]

_TYPES = ("int", "float", "bool", "str", "list", "tuple", "dict", "set")


def refused_pattern(case: ast.match_case, subject: ast.expr) -> tuple[ast.AST, str, str] | None:
    """What of a case cannot be compiled, and why and what to write; None: nothing is refused here.

    >>> (case,) = ast.parse("match x:\\n case (str() as w, 0): pass").body[0].cases
    >>> print(refused_pattern(case, ast.Name("x"))[2])
    write case [w, 0]: types are fixed by the declarations, and values of other types never occur
    """
    for pattern in ast.walk(case.pattern):
        if isinstance(pattern, ast.MatchMapping):
            return pattern, *_of_dict(pattern, ast.unparse(subject))
        if isinstance(pattern, ast.MatchClass):
            return pattern, *_of_class(pattern, case, ast.unparse(subject))
    return None


def _of_dict(pattern: ast.MatchMapping, subject: str) -> tuple[str, str]:
    key = ast.unparse(pattern.keys[0]) if pattern.keys else "key"
    of = subject if subject.replace(".", "").isidentifier() else "d"
    hint = f"ask the dict itself: if {key} in {of}: value = {of}[{key}], or {of}.get({key})"
    if pattern.rest is not None:
        tests = " and ".join(f"k != {ast.unparse(one)}" for one in pattern.keys)
        hint += f"; for **{pattern.rest}, {{k: v for k, v in {of}.items() if {tests or True}}}"
    return f"{ast.unparse(pattern)} is a pattern of a dict, which cannot be compiled", hint


def _of_class(pattern: ast.MatchClass, case: ast.match_case, subject: str) -> tuple[str, str]:
    problem = f"{ast.unparse(pattern)} is a pattern of a class, which cannot be compiled"
    if not (isinstance(pattern.cls, ast.Name) and pattern.cls.id in _TYPES):
        of = subject if subject.replace(".", "").isidentifier() else "x"
        names = pattern.kwd_attrs or ["field"]
        values = [
            ast.unparse(one.value)
            for one in pattern.kwd_patterns
            if isinstance(one, ast.MatchValue)
        ]
        value = values[0] if values else "0"
        return problem, f"test what it has: if {of}.{names[0]} == {value}: ..."
    plain = ast.unparse(_WithoutTypes().visit(copy.deepcopy(case.pattern)))
    guard = "" if case.guard is None else f" if {ast.unparse(case.guard)}"
    return problem, (
        f"write case {plain}{guard}: types are fixed by the declarations, and values of other "
        "types never occur"
    )


class _WithoutTypes(ast.NodeTransformer):
    """Patterns of types as what they capture."""

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        is_type = isinstance(node.cls, ast.Name) and node.cls.id in _TYPES
        if not is_type or len(node.patterns) > 1 or node.kwd_attrs:
            return node
        return self.visit(node.patterns[0]) if node.patterns else ast.MatchAs()

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        if node.pattern is None:
            return node
        inner = self.visit(node.pattern)
        is_any = isinstance(inner, ast.MatchAs) and inner.name is None
        return ast.MatchAs(None, node.name) if is_any else ast.MatchAs(inner, node.name)
