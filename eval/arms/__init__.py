"""What is compared. An arm is a source of packs and, where bugs are to be fixed, a solver that works with them.

    PackSource ──collect──> a pack for each task and sample ──> Solver ──solve──> Solution: a patch, and its outcome

| part | holds |
|---|---|
| `arm` | the contracts: `Arm`, `PackSource`, `Solver`, what they exchange, and `Checks`: the place to start reading |
| `build` | the arms of a config, and those that a solver adds for comparison |
| `packs` | sources of packs: a policy that plays, an earlier run, another arm, the code alone, the gold patch, none |
| `answers` | another source: a file with the answers of another explorer |
| `episodes` | what plays: a policy, or a model that is served for it, and a run folder of its episodes |
| `policy_solver`, `one_shot` | a policy with tools, or one that answers once; the patches of the arm's own agent |
| `scripted_solver` | small changes by rule, on the lines that a pack names |
| `command_solver` | any program in a sandbox, whose only way out is its model |
"""
