"""Model folders behind an OpenAI-compatible endpoint.

    ModelServer ──starts──> guardian ──starts──> vLLM, or transformers' own server
    (this process)          (ends the server when this process is gone, however that happened)

| part | holds |
|---|---|
| `server` | `ModelServer`: started, watched, started again when it dies: the place to start reading |
| `backends` | which server can run here, what it needs of the folder, its command line and variables |
| `guardian` | the process between us and the server |
| `check` | `gumshoe serve --check`: calls, streaming, and whether prompts are rendered as they were trained |
"""

from gumshoe.eval.serve.server import ModelServer

__all__ = ["ModelServer"]
