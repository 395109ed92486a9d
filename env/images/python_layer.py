"""The archive that puts an interpreter of this machine where the official images have their environment."""

from __future__ import annotations

import io
import tarfile

from gumshoe.env.harvest.pythons import Interpreter

__all__ = ["ENVIRONMENT", "SETTLE", "python_archive"]

ENVIRONMENT = "/opt/miniconda3/envs/testbed"
# Like conda's own, it activates an environment at once, or only defines the function that does.
ACTIVATE = f"""\
conda() {{
  if [ "$1" = activate ]; then
    export CONDA_DEFAULT_ENV=testbed CONDA_PREFIX={ENVIRONMENT}
    case ":$PATH:" in *:{ENVIRONMENT}/bin:*) ;; *) export PATH="{ENVIRONMENT}/bin:$PATH" ;; esac
  fi
}}
if [ "$#" -gt 0 ]; then conda activate "$1"; fi
"""
# Without a network, pip says at once what it lacks, instead of trying for minutes.
PIP_CONF = "[global]\nno-index = true\ndisable-pip-version-check = true\n"
GIT_CONFIG = "[safe]\n\tdirectory = *\n"
FILES = {
    "/opt/miniconda3/bin/activate": ACTIVATE,
    "/etc/pip.conf": PIP_CONF,
    "/etc/gitconfig": GIT_CONFIG,
    "/etc/ld.so.conf.d/testbed.conf": f"{ENVIRONMENT}/lib\n",
}
SETTLE = """\
ldconfig
cd {environment}/bin
ln -sf python{version} python3
ln -sf python{version} python
./python -c 'import bz2, ctypes, hashlib, lzma, sqlite3, ssl, zlib'
./python -m ensurepip --default-pip >/dev/null
"""
"""Run in the container once the archive is there; {version} is like 3.9."""
SUITE_KEPT = ("__init__.py", "support")


def python_archive(python: Interpreter) -> io.BytesIO:
    """The interpreter without installed packages, its own test suite and static libraries; and the small files."""
    prefix = python.path.resolve().parent.parent
    version = "{}.{}".format(*python.version)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            return info if _is_kept(info.name, version) else None

        for name in ("bin", "include", "lib"):
            if (prefix / name).is_dir():
                archive.add(prefix / name, arcname=f"{ENVIRONMENT.lstrip('/')}/{name}", filter=kept)
        for path, text in FILES.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    buffer.seek(0)
    return buffer


def _is_kept(name: str, version: str) -> bool:
    parts = name.removeprefix(ENVIRONMENT.lstrip("/")).strip("/").split("/")
    top, *below = parts
    if not below:
        return True
    if top == "bin":
        return below == [f"python{version}"]
    # The folders may hold much else: Debian's are those of the whole system.
    if name.endswith(".a") or not below[0].startswith((f"python{version}", f"libpython{version}", "libpython3.so")):
        return False
    library = below[1:] if top == "lib" else []
    if library[:1] == ["site-packages"]:
        return len(library) == 1
    return library[:1] != ["test"] or len(library) == 1 or library[1] in SUITE_KEPT
