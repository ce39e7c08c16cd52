"""What may help an operator that is dropped often: rules over a profile.

A rule says what it has seen and what to do; what the operator is for it cannot know. So it speaks
of the operator's code only where that leaves no doubt.
"""

from __future__ import annotations

import ast
import textwrap
from collections import defaultdict
from collections.abc import Iterator

from specstream.compiler.frontend.program import Program
from specstream.compiler.language.parsing import parse
from specstream.profiling.hot_words import HotWord, uses_of
from specstream.profiling.profile import Profile

__all__ = ["advise"]

# Below this rate of aborts nothing is worth the trouble, and above the other one less speculation
# is. Runs of one operator over the same events differ in their rate by up to a factor of 5 on a
# busy machine (0.26 to 1.24 % in five runs); so between the two nobody can know, and no two runs
# give opposite advice.
FEW_ABORTS = 0.01
MANY_ABORTS = 0.2
# A word with less than this share of the conflicts is no hot spot.
HOT_SHARE = 0.1
# A transaction shorter than this pays more for its bookkeeping than it gains, in seconds.
SHORT_TRANSACTION = 1e-6


def advise(profile: Profile, program: Program, seconds_per_event: float) -> tuple[str, ...]:
    """Sentences, what pays most first."""
    if profile.speculative_runs == 0:
        return (
            "Nothing ran speculatively, so nothing can be said: profile with a fixed setting, for "
            "instance threads=2, horizon=8, chunk=8, on more events.",
        )
    return (
        *_about_words(profile, program),
        *_about_records(profile),
        *_about_boosting(profile),
        *_about_chunks(profile, seconds_per_event),
        *_about_limits(profile),
    ) or ("Few runs were dropped: conflicts cost next to nothing here.",)


def _about_words(profile: Profile, program: Program) -> Iterator[str]:
    if profile.conflicts < FEW_ABORTS * profile.speculative_runs:
        return
    by_field: defaultdict[str, list[HotWord]] = defaultdict(list)
    for word in profile.words:
        if word.share >= HOT_SHARE:
            by_field[word.field].append(word)
    boosted = {one.field for one in program.operations}
    for field, words in by_field.items():
        if field in boosted:
            yield (
                f"Operations on {field} with the same keys caused "
                f"{sum(word.share for word in words):.0%} of the conflicts: lower the chunk or the "
                "horizon, so that fewer keys are in use at once, and let operations that change "
                "nothing return False."
            )
            continue
        names = ", ".join(word.name for word in words)
        said = f"{names} caused {sum(word.share for word in words):.0%} of the conflicts"
        if program.is_interpreted:
            yield (
                f"{said}: split {field}, so that what is counted in one element is spread over "
                "several that are put together where they are read, or read it less often."
            )
        elif _only_added_to(program, field):
            yield (
                f"{said}, and the operator does nothing but add to {field}: use a commutative "
                "add, which logs the summand instead of the value and never conflicts."
            )
        elif words[0].index:
            yield (
                f"{said}: split {field}, so that what is counted in one element is spread over "
                "several (one for each source, say) that are put together where they are read; "
                "or, where events only add to it, use a commutative add."
            )
        else:
            yield (
                f"{said}: split {field} into an array with an element for each key or source, "
                "read it less often, or, where events only add to it, use a commutative add. If "
                "every event needs the value that the event before has left, one core is the "
                "right answer: horizon=0."
            )
    if not by_field:
        yield (
            f"The conflicts are spread over {len(profile.words)} words or more, none of which "
            f"stands out: a shorter horizon (now {profile.horizon}) or a smaller chunk (now "
            f"{profile.chunk}) lets fewer events run side by side."
        )


def _about_records(profile: Profile) -> Iterator[str]:
    """Protocol "eager": elements that conflict only because they share an ownership record."""
    if profile.protocol != "eager" or profile.conflicts < FEW_ABORTS * profile.speculative_runs:
        return
    sharing: defaultdict[int, list[HotWord]] = defaultdict(list)
    for word in profile.words:
        sharing[word.record].append(word)
    for words in sharing.values():
        share = sum(word.share for word in words)
        if len(words) > 1 and share >= HOT_SHARE:
            yield (
                f"{words[0].name} and {words[1].name} lie under one ownership record, which caused "
                f"{share:.0%} of the conflicts: declare the field with a smaller share=, or use "
                'protocol="value", which distinguishes elements.'
            )
            return


def _about_boosting(profile: Profile) -> Iterator[str]:
    if profile.aborts["shadow"] > FEW_ABORTS * profile.speculative_runs:
        yield (
            f"{profile.aborts['shadow']:,} runs were dropped because the inverse of an operation "
            "on a boosted field raised, or because operations with different keys do not commute: "
            "look at what they read and write besides what belongs to their key."
        )


def _about_chunks(profile: Profile, seconds_per_event: float) -> Iterator[str]:
    rate = profile.abort_rate
    if rate > MANY_ABORTS and profile.chunk > 1:
        yield (
            f"{rate:.0%} of the runs were dropped, each with a chunk of {profile.chunk} events: "
            "lower the chunk, so that less is lost and less is read at once."
        )
    elif rate >= FEW_ABORTS:
        yield (
            f"{rate:.1%} of the runs were dropped: no clear gain is to be had from another chunk "
            "or horizon, as this rate may be several times higher or lower in the next run. "
            "specstream tune measures which setting is fastest."
        )
    elif rate < FEW_ABORTS and 0 < seconds_per_event * profile.chunk < SHORT_TRANSACTION:
        yield (
            f"A transaction takes {1e6 * seconds_per_event * profile.chunk:.1f} µs: raise the "
            "chunk until it takes 2 to 5 µs, which spreads its fixed cost over more events."
        )


def _about_limits(profile: Profile) -> Iterator[str]:
    if profile.aborts["log_full"] > FEW_ABORTS * profile.speculative_runs:
        yield (
            f"{profile.aborts['log_full']:,} runs passed a limit of their logs: lower the chunk, "
            "or give Engine(limits=ss.Limits(...)) larger ones."
        )


def _only_added_to(program: Program, field: str) -> bool:
    """Whether every use of a field is ``x.field += ...`` or ``x.field[...] += ...``, or with -."""
    used = {(written.site, *_place(node)) for _, written, node in uses_of(program, field)}
    added = set()
    for written in program.written.values():
        for node in ast.walk(parse(textwrap.dedent(written.text))):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
                target = node.target
                base = target.value if isinstance(target, ast.Subscript) else target
                added.add((written.site, *_place(base)))
    return bool(used) and used <= added


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
