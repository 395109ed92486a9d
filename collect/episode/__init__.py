"""One episode: an agent in front of a task.

    EpisodeSpec + Agent (spec) ──> Episode (episode) <── completions of a policy
                                      │     └ messages by the rules of `conversation`
                                      └ observations, which programs read through `tool_output`

| part | holds |
|---|---|
| `spec` | what an episode is made of: the task with its oracle and seed, the agent with its tools and prompts |
| `episode` | the state machine: what the policy is asked next, and what its answer leads to |
| `conversation` | what a turn states, what is left out of a long conversation, the forms in which servers want it |
| `tool_output` | what the tools have answered so far, as data: code, failing tests, stops, values |
"""
