"""Who decides: models, scripts, people and recordings, all behind `gumshoe.protocols.Policy`.

| part | holds |
|---|---|
| `registry` | from a config to the policy of one episode; scripts and recordings, which follow a list of completions |
| `strategy` | `StrategyPolicy`, the policy of all programs; a list of their strategies; `Situation`, which these read |
| `heuristics`, `investigator`, `teacher` | the strategies; `gold` takes the gold patch apart for the teacher |
| `providers` | models behind servers; `llm` reads a user's llm.yaml |
| `human` | a person at the terminal |
"""

from gumshoe.collect.policies.registry import make_policy

__all__ = ["make_policy"]
