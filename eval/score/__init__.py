"""From finished episodes to figures.

    Trajectory, Oracle ──metrics──> scores of an episode ──measures──> means with intervals ──tables──> a terminal
                │                   (`Result.scores`)                  (`Summary`)          └─────────> the viewer
                └── ranking, sources

| part | holds |
|---|---|
| `metrics` | every metric: its name, its unit, and how it is computed for an episode: the place to add one |
| `ranking` | Acc@k over files and functions, by the rule of the papers |
| `sources` | the files of tasks as they were before the fix, in which functions are looked up |
| `measures` | what a summary says of many episodes: means, comparisons, pass@k, costs, calibration |
| `stats` | intervals and tests: functions of plain numbers |
| `tables` | figures as people read them |
"""
