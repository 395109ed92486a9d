"""Playing episodes with policies, and what is kept of them.

| part | holds |
|---|---|
| `config` | the config of `gumshoe collect`, and those of the policies |
| `packs` | context packs: how they are made and read, whether their quotes were seen, how well their places match |
| `text_env` | the environment as plain text, for those who have only a text generator |
| `commands` | the command lines; that of `play`, debugging by hand, reads what is typed with `policies.human` |
| `episode` | one episode: the state machine, its agent and its conversation |
| `run` | playing episodes to their trajectories, one or many: workers, budgets, branches, clusters |
| `policies` | who decides: models, scripts, people and recordings, all behind `gumshoe.protocols.Policy` |
| `prompts` | the prompts, and how texts are made from Jinja templates |
| `data` | run folders, journals, filters, datasets, and the formats of others |
"""
