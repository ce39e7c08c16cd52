"""The command line: ``specstream run``, ``replay``, ``tune``, ``explain``, ``profile`` and others.

Progress and messages go to stderr, results to stdout. Exit status: 0, 1 for what went wrong while
running, 2 for a command that cannot be understood, 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

try:
    import click

    import specstream as ss
    from specstream.cli import (
        bench,
        check,
        checkpoint,
        compact,
        demo,
        doctor,
        explain,
        latest,
        new,
        pipeline,
        profile,
        replay,
        run,
        state,
        tune,
        verify,
    )
except Exception as broken:
    # A package that is missing, or of a version with which nothing can be imported.
    from specstream.doctor.alone import take_over

    take_over(broken)
    raise

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ss.__version__, prog_name="specstream")
def main() -> None:
    """Stateful stream operators with shared state, on all cores, with the sequential answer."""


for command in (
    bench.bench,
    check.check,
    checkpoint.checkpoint,
    compact.command,
    demo.demo,
    doctor.doctor,
    explain.explain,
    latest.latest,
    new.new,
    pipeline.pipeline,
    profile.profile,
    replay.replay,
    run.run,
    state.state,
    tune.tune,
    verify.verify,
):
    main.add_command(command)
