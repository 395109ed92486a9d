"""Training on exported datasets, with TRL: supervised, by preferences, and on live episodes.

    dataset ──> rows/ (tokens and labels) ──> sft.py, dpo.py ──┐
                                                               ├──> run.py ──> OUT/model
    live episodes (episodes.py) ─────────────────> grpo.py ────┘

Start with `rows`, which has a picture, then read `sft.train_sft` from top to bottom.

| part | holds |
|---|---|
| `config` | the configs of all methods |
| `sft`, `dpo`, `grpo` | the methods: supervised, by preferences (with its rows), and GRPO on live episodes |
| `run` | what they have in common: the run folder, the trainer's arguments and log, saving the model |
| `model` | the model that a run starts from, its tokenizer and its chat template |
| `episodes` | live episodes as training sees them; the config names the function that makes them |
| `rows` | rows of a dataset as tokens, and which of these are trained |
| `masks` | what trains of a row, to look at |
| `templates` | chat templates |
| `commands` | the command lines |
"""
