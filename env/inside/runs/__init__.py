"""Test runs that are watched, changed or traced, often in forks."""
