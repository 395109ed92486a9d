"""Downloads the source distribution that a requirement names, without running any of it. Runs inside a build sandbox.

    python fetch_sdist.py REQUIREMENT FOLDER

The index, certificates and credentials are the ones that pip is configured with: pip's own finder picks the file and
pip's own session fetches it. `pip download` would do so too, but runs a package's build code to learn its metadata.
Prints one JSON object: `{"file", "name", "version"}`, or `{"error"}`.

Standard library and pip only.
"""

import hashlib
import importlib
import json
import os
import sys
from typing import Any

MAX_BYTES = 256 << 20


def import_pip():
    """Makes pip importable; an interpreter without pip may bundle its wheel."""
    try:
        importlib.import_module("pip")
    except ImportError:
        import ensurepip

        folder = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
        sys.path[:0] = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("pip-")]


def fetch(text, folder):
    """Downloads the newest sdist that fits; returns what is printed."""
    from pip._internal.commands import create_command
    from pip._vendor.packaging.requirements import Requirement

    wanted = Requirement(text)
    command: Any = create_command("download")
    options, _ = command.parse_args(["--quiet", "--no-binary", ":all:", text])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session, ignore_requires_python=True)
        best = finder.find_best_candidate(wanted.name, wanted.specifier).best_candidate
        if best is None:
            return {"error": "the index has no source distribution of {}".format(text)}
        link = best.link
        response = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
        response.raise_for_status()
        path = os.path.join(folder, os.path.basename(link.filename))
        digest = hashlib.new(link.hash_name or "sha256")
        size = 0
        with open(path, "wb") as file:
            for chunk in response.iter_content(1 << 16):
                size += len(chunk)
                if size > MAX_BYTES:
                    return {"error": "the source distribution has more than {} MiB".format(MAX_BYTES >> 20)}
                digest.update(chunk)
                file.write(chunk)
    if link.hash and digest.hexdigest() != link.hash:
        return {"error": "the download is damaged: its hash differs from the index's"}
    return {"file": os.path.basename(path), "name": best.name, "version": str(best.version)}


def main():
    """Prints the answer as the last line."""
    import_pip()
    try:
        answer = fetch(sys.argv[1], sys.argv[2])
    except Exception as error:  # whatever pip raises is an answer for the person who named the package
        answer = {"error": " ".join(str(error).split()) or type(error).__name__}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
