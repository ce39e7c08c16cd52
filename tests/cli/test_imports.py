"""What is imported when: `import specstream` next to nothing, and optional packages by few."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import specstream as ss

HEAVY = ("numba", "llvmlite", "numpy", "pyarrow", "specstream.compiler", "specstream._native")
OPTIONAL = ("click", "rich", "matplotlib", "pyspark", "prometheus_client")


def modules_after(code: str) -> set[str]:
    """What a fresh process has imported after some statements, beyond what Python begins with."""
    code = f"import sys; before = {{*sys.modules}}; {code}; print(*{{*sys.modules}} - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def imported(*modules: str) -> set[str]:
    """Of the optional packages, those that a fresh process has after importing some modules."""
    return set(OPTIONAL) & modules_after(f"import {', '.join(modules)}")


def test_the_package_alone_imports_next_to_nothing() -> None:
    found = modules_after("import specstream")
    ours = {"specstream", "specstream.doctor", "specstream.doctor.beginning"}
    assert {name for name in found if name.startswith("specstream")} == ours
    assert not found & {*HEAVY, *OPTIONAL}
    assert len(found) < 30, sorted(found)


def test_each_name_imports_what_it_needs() -> None:
    """A layout needs no compiler, an operator no checkpoint: each costs its own import only."""
    found = modules_after("import specstream as ss; ss.State, ss.array, ss.nullable")
    assert not found & {"numba", "specstream.compiler"}
    found = modules_after("import specstream as ss; ss.operator")
    assert not found & {"specstream.checkpoint", "specstream.pipelines", "specstream.engine"}


def test_type_checkers_and_python_read_the_same_names() -> None:
    tree = ast.parse(Path(ss.__file__).read_text())
    checked = {
        name.name: one.module
        for block in tree.body
        if isinstance(block, ast.If)
        for one in block.body
        if isinstance(one, ast.ImportFrom)
        for name in one.names
    }
    assert checked == ss._MODULE_OF
    assert {*ss.__all__} == {*ss._MODULE_OF, *ss._MODULES}
    assert {*ss.__all__} <= {*dir(ss)}


def test_the_operator_stays_one_whatever_is_imported() -> None:
    """A package of that name would take the decorator's place when it is imported."""
    modules = modules_after("import specstream.engine.engine, specstream.cli")
    below = {name.split(".")[1] for name in modules if name.startswith("specstream.")}
    assert not below & set(ss._MODULE_OF) - {"structures"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "may"),
    [
        (
            ("specstream.profiling", "specstream.tuning.search", "specstream.tuning.rivals"),
            set(),
        ),
        (("specstream.tuning.forecast.forecast", "specstream.tuning.forecast.report"), set()),
        (("specstream.figures.palette",), set()),
        (("specstream.monitoring.metrics",), {"prometheus_client"}),
        (("specstream.monitoring.watch",), {"rich"}),
        (("specstream.cli",), {"click", "rich"}),
    ],
    ids=["tuning", "forecast", "palette", "metrics", "live", "cli"],
)
def test_a_part_imports_what_it_is_about(modules: tuple[str, ...], may: set[str]) -> None:
    assert imported(*modules) <= may


@pytest.mark.slow
def test_specstream_alone_imports_no_pyspark() -> None:
    code = "import sys, specstream; sys.exit('pyspark' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys; sys.modules['pyspark'] = None; import specstream as s; s.spark.apply"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert 'pip install "specstream[spark]"' in done.stderr
