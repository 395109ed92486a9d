"""Solvers, which fix the bug with a pack: a script that tries small changes, a policy, or a program."""
