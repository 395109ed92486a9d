"""Which installed packages a bubblewrap sandbox sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.sandboxes.python_mounts import distribution_paths


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
