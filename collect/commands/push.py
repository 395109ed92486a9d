"""`gumshoe push`: put a dataset on the Hugging Face Hub; without --yes, only show what would be sent."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gumshoe.errors import ConfigError, DatasetError

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe push datasets/demo --repo me/traces                 lists the files, uploads nothing
  gumshoe push datasets/demo --repo me/traces --private --yes

The token is the one of `hf auth login`, or HF_TOKEN.
"""
REPO = re.compile(r"[\w.-]+/[\w.-]+")
SECRET = re.compile(rb"\b(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})\b")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("dataset", type=Path, help="dataset folder from gumshoe export")
    parser.add_argument("--repo", required=True, help="USER/NAME on the Hub")
    parser.add_argument("--private", action="store_true", help="make a newly created repository private")
    parser.add_argument("--yes", action="store_true", help="upload the dataset")


def run(arguments: argparse.Namespace) -> int:
    """Shows the files and, with --yes, sends them."""
    files = files_to_send(arguments.dataset)
    if not REPO.fullmatch(arguments.repo):
        raise ConfigError(f"--repo {arguments.repo!r} is not of the form USER/NAME")
    for path in files:
        print(f"  {path.stat().st_size:>12,}  {path.relative_to(arguments.dataset)}")
    total = sum(path.stat().st_size for path in files)
    if not arguments.yes:
        print(f"{len(files)} files, {total:,} bytes would be uploaded to datasets/{arguments.repo}; --yes uploads them")
        return 0
    print(f"sent: {_send(arguments.dataset, arguments.repo, private=arguments.private)}")
    return 0


def files_to_send(dataset: Path) -> list[Path]:
    """The card with its pictures and the shards, and nothing else that may be in the folder.

    Raises:
        DatasetError: it is not a Gumshoe dataset, its card does not list its content, or it seems to contain a key.
    """
    card = dataset / "README.md"
    shards = sorted(dataset.glob("*/*.parquet"))
    if not card.is_file() or not shards:
        raise DatasetError(f"{dataset} is not a dataset folder: create one with gumshoe export")
    if b"\nconfigs:" not in card.read_bytes():
        raise DatasetError(f"{card} has no configs, so no view would load: create it again with gumshoe export")
    _refuse_secrets(dataset, shards)
    return [card, *shards]


def _refuse_secrets(dataset: Path, shards: list[Path]) -> None:
    """Looks through every text of every row: once something is on the Hub, it cannot be taken back."""
    import pyarrow.parquet

    for shard in shards:
        with pyarrow.parquet.ParquetFile(shard) as file:
            for batch in file.iter_batches(batch_size=32):
                for row in batch.to_pylist():
                    found = SECRET.search(repr(row).encode("utf-8", "replace"))
                    if found is not None:
                        where = f"{shard.relative_to(dataset)}, row {row.get('id')}"
                        shown = found[0][:6].decode()
                        raise DatasetError(f"{where} contains what looks like a key ({shown}...): remove it first")


def _send(dataset: Path, repo: str, *, private: bool) -> str:
    """Uploads in one commit and returns its address. Raises DatasetError if the Hub refuses."""
    import httpx2
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    hub = huggingface_hub.HfApi()
    try:
        hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
        patterns = ["README.md", "*/*.parquet"]
        done = hub.upload_folder(repo_id=repo, repo_type="dataset", folder_path=dataset, allow_patterns=patterns)
    except (HfHubHTTPError, LocalTokenNotFoundError, httpx2.HTTPError, OSError) as error:
        raise DatasetError(f"the Hub rejected {dataset}: {' '.join(str(error).split())[:300]}") from None
    return str(done.commit_url)
