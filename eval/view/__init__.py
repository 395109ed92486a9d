"""A viewer for traces, datasets and evaluations: an index of them, and a web server in front of it."""
