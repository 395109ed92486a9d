"""Names that tell two datasets apart.

`datasets.load_dataset` keeps what it has read in a cache, under a key made from the last part of the folder's path
and the card's header, not from the data. Two exports called `dataset` would be taken for one, and the older one's rows
returned. With a fingerprint of the data in the names of the shards, and so in the header, each has a key of its own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["add_fingerprint"]

DIGITS = 12


def add_fingerprint(folder: Path) -> str:
    """Renames every `SPLIT-NNNNN.parquet` below `folder` to `SPLIT-FINGERPRINT-NNNNN.parquet`.

    Returns:
        The fingerprint: the first digits of the SHA-256 of all shards, in the order of their paths.
    """
    digest = hashlib.sha256()
    shards = sorted(folder.rglob("*.parquet"))
    for shard in shards:
        digest.update(shard.relative_to(folder).as_posix().encode())
        with shard.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    fingerprint = digest.hexdigest()[:DIGITS]
    for shard in shards:
        split, _, number = shard.name.rpartition("-")
        shard.rename(shard.with_name(f"{split}-{fingerprint}-{number}"))
    return fingerprint
