"""Makes bugs without a language model: mutates a clean project and keeps what its own tests detect.

    projects ──> candidates ──> judging ────────────> make ──> tasks ──> a task set
                 (operators)    (env/inside/bugs)

`make` is `gumshoe synth`, and drives the others: it draws candidates, has them judged, and writes the tasks.
`packages` is `gumshoe harvest`: it gets packages and builds environments for them, makes bugs in the same way, finds
those that people repaired in their histories, checks them all, and measures how hard each is.

Judging says whether a candidate is a bug at all. The verifier (`env/verifier`), which says whether a patch repairs one,
has no part in it; `packages.check` asks it about the finished tasks.
"""
