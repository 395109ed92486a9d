"""What a report is worth to whoever has to repair the bug: a fixed solver, with and without it."""
