"""Runs of the tests that judge: patches, gold patches again and again, findings replayed."""
