"""Training on exported datasets, with TRL: supervised, by preferences, and on live episodes.

| part | holds |
|---|---|
| `config` | the configs of all methods |
| `run` | one training run, whatever its method: the place to start reading |
| `sft`, `dpo`, `rl` | the methods: supervised, by preferences (with its rows), and GRPO on live episodes |
| `trainer` | what the trainers have in common: arguments and callbacks |
| `model` | the model that a run starts from, its tokenizer and its chat template |
| `episodes` | live episodes as training sees them; the config names the function that makes them |
| `rows` | rows of a dataset as tokens, and which of these are trained |
| `masks` | what trains of a row, to look at |
| `templates` | chat templates |
| `commands` | the command lines |
"""
