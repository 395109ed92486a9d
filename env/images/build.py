"""Builds the images of rows: an interpreter, the packages of a version, and the repository at the base commit.

Each is a layer of its own, so the images of one version of a repository share all but the last. Packages are installed
in containers that share this machine's network: what a package runs while it is installed can reach what this machine
can reach. What is made needs no network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound

from gumshoe.env.harvest.pythons import Interpreter, choose_python
from gumshoe.env.images.checkout import checkout_archive, commit_date, first_file
from gumshoe.env.images.dated_index import Upstream, dated_index
from gumshoe.env.images.python_layer import ENVIRONMENT, SETTLE, python_archive
from gumshoe.env.images.recipes import Recipe, pinned_names, recipe_of
from gumshoe.env.repositories import Repositories
from gumshoe.env.sandboxes.engine import daemon_errors
from gumshoe.env.tasks.swebench import image_of
from gumshoe.env.tasks.testbed import ROOT
from gumshoe.errors import TaskError
from gumshoe.records import Task

__all__ = ["LAYERS", "ImageBuilder", "packages_date"]

LAYERS = "gumshoe-testbed"
"""Images with this name are what the images of rows share."""
STEP_S = 1800
LINE_CHARS = 300
# The first wheels for a new Python come weeks or months after it.
GRACE = timedelta(days=365)
RELEASED = {
    "3.6": datetime(2016, 12, 23, tzinfo=UTC),
    "3.7": datetime(2018, 6, 27, tzinfo=UTC),
    "3.8": datetime(2019, 10, 14, tzinfo=UTC),
    "3.9": datetime(2020, 10, 5, tzinfo=UTC),
    "3.10": datetime(2021, 10, 4, tzinfo=UTC),
    "3.11": datetime(2022, 10, 24, tzinfo=UTC),
}
CHANGES = ('CMD ["/bin/bash"]', f"WORKDIR {ROOT}")


# The repository itself is installed with a row, and a package that was removed from the index has a successor.
REQUIREMENTS = r"/^[[:space:]]*(-e[[:space:]]*)?\.($|[[:space:]]|\[)/d; s/^types-pkg_resources.*/types-setuptools/"


def packages_date(python: str, *dates: datetime | None) -> datetime:
    """The latest upload time of packages to use: the latest of `dates` and of a year after the Python came out."""
    known = [date for date in dates if date is not None]
    if python in RELEASED:
        known.append(RELEASED[python] + GRACE)
    if not known:
        raise TaskError("it is not known from which date the packages should be")
    return max(known)


class ImageBuilder:
    """Makes images with a container engine.

    Args:
        client: of the engine.
        repositories: folder of bare git repositories.
        base: the image to begin with: it has git, bash, and the libraries that the interpreters need.
        recipe: how the environment of a repository's version is made.
        say: takes a line of progress.
    """

    def __init__(
        self,
        client: Any,
        repositories: Path,
        *,
        base: str,
        recipe: Callable[[str, str], Recipe] = recipe_of,
        upstream: Upstream | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        client.api.timeout = STEP_S + 60
        self._client = client
        self._repositories = repositories
        self._base = base
        self._recipe = recipe
        self._upstream = upstream or Upstream.of_this_machine()
        self._say = say

    def build(self, row: Mapping[str, Any], task: Task) -> str | None:
        """Makes the image of a row; returns its name, or None if it is there already.

        Raises:
            TaskError: it cannot be made; the message says why in a line.
            SandboxError: the engine refuses.
        """
        name = task.workspace.image or image_of(task.id)
        with daemon_errors(f"task {task.id}"):
            if self._is_there(name):
                return None
            recipe = self._recipe(row["repo"], str(row.get("version") or ""))
            repository = Repositories(self._repositories).find(task)
            if repository is None:
                raise TaskError(
                    f"no repository of {row['repo']} in {self._repositories} has the commit {row['base_commit']}"
                )
            setup = str(row.get("environment_setup_commit") or "")
            setup_date = commit_date(repository, setup) if setup else None
            commit = setup if setup_date else row["base_commit"]
            until = packages_date(recipe.python, setup_date or _time(row.get("created_at")))
            files = checkout_archive(repository, row["base_commit"], ROOT)
            self._say(f"{task.id}: {row['base_commit'][:10]} on packages of {until:%Y-%m-%d}")
            environment = self._environment(recipe, repository, commit, until)
            with self._container(environment) as container:
                container.put_archive("/", files)
                steps = "\n".join((*recipe.prepare, recipe.install or ":"))
                self._install(container, steps, until, recipe)
                repository_name, _, tag = name.rpartition(":")
                container.commit(repository=repository_name, tag=tag, changes=list(CHANGES))
        return name

    def _environment(self, recipe: Recipe, repository: Path, commit: str, until: datetime) -> str:
        """The layer with the packages."""
        python = self._python(choose_python(f"=={recipe.python}.*"))
        listed = first_file(repository, commit, recipe.requirements)
        if recipe.requirements and listed is None:
            raise TaskError(f"{commit[:10]} has no {' or '.join(recipe.requirements)}")
        key = json.dumps([python, recipe.packages, listed and commit, f"{until:%Y-%m-%d}"])
        name = f"{LAYERS}:packages-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        if self._is_there(name):
            return name
        self._say(f"  packages of {until:%Y-%m-%d}: {' '.join(recipe.packages)} {listed or ''}".rstrip())
        steps = ["python -m pip install --quiet --upgrade pip setuptools wheel"]
        if listed is not None:
            # Requirement files refer to others.
            steps += [
                f"cd {shlex.quote(str(Path(ROOT, listed).parent))}",
                f"find {ROOT} -name '*.txt' -not -path '*/.git/*' -exec sed -i -E {shlex.quote(REQUIREMENTS)} {{}} +",
                f"python -m pip install -r {shlex.quote(Path(listed).name)}",
                f"cd / && rm -rf {ROOT}",
            ]
        if recipe.packages:
            steps.append(f"cd / && python -m pip install {shlex.join(recipe.packages)}")
        with self._container(python) as container:
            if listed is not None:
                container.put_archive("/", checkout_archive(repository, commit, ROOT))
            self._install(container, "\n".join(steps), until, recipe, workdir="/")
            container.commit(repository=LAYERS, tag=name.partition(":")[2])
        return name

    def _python(self, python: Interpreter) -> str:
        """The layer with the interpreter."""
        base: str = self._client.images.get(self._base).id
        name = f"{LAYERS}:python-{python.text}-{base.partition(':')[2][:12]}"
        if not self._is_there(name):
            self._say(f"  Python {python.text}")
            with self._container(self._base) as container:
                container.put_archive("/", python_archive(python))
                version = "{}.{}".format(*python.version)
                _run(container, SETTLE.format(environment=ENVIRONMENT, version=version), workdir="/")
                container.commit(repository=LAYERS, tag=name.partition(":")[2])
        return name

    def _install(self, container: Any, steps: str, until: datetime, recipe: Recipe, workdir: str = ROOT) -> None:
        with dated_index(until, self._upstream, pinned_names(recipe.packages)) as index:
            variables = {
                "PIP_CONFIG_FILE": "/dev/null",
                "PIP_INDEX_URL": index,
                "PIP_NO_CACHE_DIR": "1",
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_PROGRESS_BAR": "off",
                "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",
            }
            _run(container, steps, workdir=workdir, environment=variables)

    def _is_there(self, name: str) -> bool:
        try:
            self._client.images.get(name)
        except ImageNotFound:
            return False
        return True

    @contextlib.contextmanager
    def _container(self, image: str) -> Generator[Any]:
        # One left behind because this process was killed ends and is removed by itself.
        container = self._client.containers.run(
            image,
            ["sleep", str(2 * STEP_S)],
            entrypoint=[],
            network_mode="host",
            detach=True,
            remove=True,
            stop_signal="SIGKILL",
        )
        try:
            yield container
        finally:
            container.kill()


def _run(container: Any, steps: str, *, workdir: str, environment: Mapping[str, str] | None = None) -> None:
    argv = ["timeout", str(STEP_S), "bash", "-ec", steps]
    code, output = container.exec_run(argv, workdir=workdir, environment=dict(environment or {}))
    if code == 124:
        raise TaskError(f"not installed within {STEP_S} s")
    if code:
        raise TaskError(_why(output.decode("utf-8", "replace")))


def _why(output: str) -> str:
    """The line that tells what failed: pip's first error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:ERROR|error|fatal)\b", line)]
    return (errors or lines[-1:] or ["a step of the installation failed and said nothing"])[0][:LINE_CHARS]


def _time(text: Any) -> datetime | None:
    try:
        made = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return made if made.tzinfo else made.replace(tzinfo=UTC)
