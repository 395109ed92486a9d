"""From finished episodes to figures.

    Trajectory, Oracle ──metrics──> scores of an episode ──measures──> means with intervals ──tables──> a terminal
                │                   (`Result.scores`)                  (`Summary`)          └─────────> the viewer
                └── buggy_code

| part | holds |
|---|---|
| `metrics` | every metric: its name, its unit, and how it is computed for an episode: the place to add one |
| `buggy_code` | the files of tasks as they were before the fix, in which functions are looked up |
| `measures` | what a summary says of many episodes: means, comparisons, pass@k, costs, calibration; their statistics |
| `tables` | figures as people read them |
"""
