"""A small dataset in the exported form, made with `datasets` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SYSTEM = "You look for the cause of failing tests and report it."


def _tool(name: str, description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": sorted(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    _tool("eval", "Run the tests."),
    _tool("view", "Show lines of a file.", path={"type": "string"}, start={"type": "integer"}),
    _tool("report", "Hand over what you found.", locations={"type": "array"}, hypothesis={"type": "string"}),
]


def _ask(text: str, name: str, **arguments: Any) -> dict[str, Any]:
    call = {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": text, "tool_calls": [call]}


def _answer(name: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": f"call-{name}", "name": name}


def conversation(number: int) -> list[dict[str, Any]]:
    """An episode; the file, the line and the value differ with the number."""
    path, line, value = f"shop/part{number}.py", 10 + 7 * number, 100 + number
    location = {"path": path, "start": line, "end": line, "why": "café"}
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"tests/test_part{number}.py::test_total fails."},
        _ask("[seek 0.3] What fails?", "eval"),
        _answer("eval", f"[step 0] 1 failed\n{path}:{line} in total: return {value}\nE assert {value} == 1"),
        _ask("[seek 0.5] I read total.", "view", path=path, start=line),
        _answer("view", f"[step 1] {path} {line}-{line} of 90 lines\n {line}     return {value}"),
        _ask("[report 0.9] I hand it over.", "report", locations=[location], hypothesis=f"{path}:{line} is wrong"),
    ]


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A row as `gumshoe export` writes it, of the columns that training reads."""
    return {"id": f"episode-{number}", "messages": conversation(number), "tools": TOOLS, **changes}


def write_dataset(folder: Path, splits: dict[str, list[dict[str, Any]]], *, view: str = "seeker") -> Path:
    """Writes rows as a dataset folder with a card that names its configs."""
    import datasets

    files: list[str] = []
    for split, rows in splits.items():
        lists = [column for column in (rows[0] if rows else row(0)) if column != "id"]
        kinds = {"id": datasets.Value("string"), **dict.fromkeys(lists, datasets.List(datasets.Json()))}
        columns = {name: [each[name] for each in rows] for name in kinds}
        table = datasets.Dataset.from_dict(columns, datasets.Features(kinds))
        name = f"{view}/{split}-00000.parquet"
        (folder / view).mkdir(parents=True, exist_ok=True)
        table.to_parquet(str(folder / name))
        files.append(f"  - split: {split}\n    path: {name}")
    card = f"---\nconfigs:\n- config_name: {view}\n  data_files:\n" + "\n".join(files) + "\n---\n# Traces\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder
