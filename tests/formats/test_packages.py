"""What formats need is imported when one is made, and named where it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import specstream as ss


def test_the_module_alone_imports_none_of_them() -> None:
    code = (
        "import sys, specstream as ss; ss.formats.xml, ss.formats.json;"
        "print({'lxml', 'msgspec', 'jmespath'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("format", "package"), [("xml", "lxml"), ("json", "msgspec"), ("json", "jmespath")]
)
def test_a_missing_package_is_named_with_its_extra(
    format: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    made = getattr(ss.formats, format)
    with pytest.raises(
        ImportError, match=rf'needs {package}: pip install "specstream\[{format}\]"'
    ):
        made("a", x=int)
