"""The numbers of an evaluation: records, measures, intervals, comparisons, terminal tables."""
