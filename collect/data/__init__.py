"""What is kept of episodes, and what becomes of it.

| part | holds |
|---|---|
| `store`, `journal` | the run folder, and the episodes in flight, which a new process continues |
| `tree` | finished episodes that share a beginning, and what each decision in them was worth |
| `filters`, `unseen` | rules that decide what becomes data; the leak check |
| `export` | datasets: their rows by view, their shards, their card |
| `formats`, `messages` | the files of others, in and out: ATIF, chat messages, SWE-agent, mini-swe-agent |
"""
