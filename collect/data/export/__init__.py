"""From run folders to a Hugging Face dataset.

| part | holds |
|---|---|
| `export` | the views, the splits, the shards of Parquet that the rows are written to |
| `rows` | rows of whole episodes, of seekers, and of single turns |
| `trees` | rows that say what decisions were worth |
| `card` | what is said of a dataset on its page |
"""

from gumshoe.collect.data.export.export import ExportResult, export_runs

__all__ = ["ExportResult", "export_runs"]
