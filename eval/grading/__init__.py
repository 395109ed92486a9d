"""Test runs that judge: patches are graded, gold patches run repeatedly."""
