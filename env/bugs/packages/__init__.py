"""From the name of a package to verified tasks: get, environment, baseline, bugs, history, check, difficulty."""
