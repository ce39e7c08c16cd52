"""Binding times: the rules for all kinds of expressions, by their classes."""

from __future__ import annotations

import ast

from specstream.compiler.facts import binding_time_operations
from specstream.compiler.facts.binding_time_calls import of_call
from specstream.compiler.facts.binding_times import BindingTimes, Rule

__all__ = ["RULES"]

RULES: dict[type[ast.expr], Rule] = {
    **binding_time_operations.RULES,
    ast.Attribute: BindingTimes.of_Attribute,
    ast.Call: of_call,
    ast.Constant: BindingTimes.of_Constant,
    ast.Name: BindingTimes.of_Name,
}
