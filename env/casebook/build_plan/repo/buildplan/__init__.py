"""Plan builds: which tasks run, in which order, on how many workers."""
