"""Playing episodes to their trajectories.

| part | holds |
|---|---|
| `runner` | all episodes of a run: the queue, the workers, what is tried again |
| `play` | one episode with its policy, to its trajectory and verdict |
| `branching` | trees: which episodes of one are still to be played, and where each begins |
| `control` | what the workers share: whether to stop, what was spent; threads and signals |
| `cluster` | environments on the nodes of a Ray cluster |

What a run keeps on disk is in `gumshoe.collect.data`: the run folder, and the journals of episodes in flight.
"""
