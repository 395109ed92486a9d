"""The host's side of `pdb`: one debugged program, its breakpoints, and what a model reads of it."""
