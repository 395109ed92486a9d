"""Evaluation: arms, grading, measures, model servers, and the viewer.

    gumshoe eval CONFIG: commands.eval ──> evaluate
        Checks                what is missing or wrong, before anything runs: every part checks itself
        arms ──> packs ──> solvers ──> solutions          (episodes are those of `collect`; `grader` judges patches)
        results (score)       one Result for each episode or solution, and the Summary of them
        swebench              the official harness, if the config asks for it
        results.jsonl, summary.json ──> view: pages beside them

| evaluation | holds |
|---|---|
| `evaluate` | `gumshoe eval` from its config to its files: the place to start reading |
| `config` | the configs of `gumshoe serve` and `gumshoe eval` |
| `arms` | what is compared: where the pack of an arm comes from, and who solves the task with it |
| `grader` | whether a patch fixes the bug, by our verifier, each patch once; tasks that are flaky |
| `score` | the metrics of finished episodes, and means, intervals and tables of them |
| `records`, `results` | what an evaluation records, and how it is made from what the arms did |
| `swebench` | the official SWE-bench harness: predictions, a run of it, its report, its verdicts as scores |
| `commands` | the command lines, of the servers, too |

| servers, and what goes with training | holds |
|---|---|
| `serve` | model folders behind an OpenAI-compatible endpoint; evaluations start it, too |
| `mcp`, `view` | the tools for any agent, and the viewer of traces, datasets and evaluations |
| `live`, `openenv` | episodes for a model that is being trained, in this process and from a server |
| `web` | who may ask `openenv`, `mcp` and `view`, and how they listen |
| `masks` | what training makes of a conversation, for the viewer and the check of `serve` |
"""
