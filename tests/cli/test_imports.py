"""What the command line needs is imported by nothing else."""

import subprocess
import sys

import pytest

OPTIONAL = ("click", "rich", "matplotlib", "pyspark", "prometheus_client")


def imported(*modules: str) -> set[str]:
    """Of the optional packages, those that a fresh process has after importing some modules."""
    code = f"import sys; import {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(OPTIONAL) & set(done.stdout.split())


def test_the_package_imports_nothing_optional() -> None:
    assert imported("specstream") == set()


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
