"""Which installed packages a bubblewrap sandbox sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.sandboxes.host.python_mounts import distribution_paths
from gumshoe.errors import ConfigError


def test_a_copy_that_a_library_brings_for_itself_does_not_replace_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("pytest",)
    installed = distribution_paths(wanted)
    assert any(path.endswith("/site-packages/pluggy") for path in installed)
    copy = tmp_path / "pluggy-0.1.dist-info"
    copy.mkdir()
    (copy / "METADATA").write_text("Metadata-Version: 2.1\nName: pluggy\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    distribution_paths.cache_clear()
    assert distribution_paths(wanted) == installed


@pytest.mark.parametrize("name", ["no-such-package", "pytest>=8", ""])
def test_a_package_that_is_not_installed_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is not installed"):
        distribution_paths(("pytest", name))


def test_what_a_package_would_require_elsewhere_need_not_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "site-packages" / "made-1.dist-info"
    made.mkdir(parents=True)
    requires = 'Requires-Dist: no-such-package; sys_platform == "win32"\nRequires-Dist: Py_Test\n'
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: made\nVersion: 1\n{requires}")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    distribution_paths.cache_clear()
    assert distribution_paths(("made",)) == ()
