"""Gives a package and its tests other names, so that nobody can know its code by heart."""
