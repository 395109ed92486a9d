"""Evaluation: arms, grading, measures, model servers, and the viewer."""
