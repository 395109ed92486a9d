"""Renames a package and its tests, so that no model can know its code by heart."""
