"""Queries over lists of dictionaries: Query(rows).where("age > 30").order_by("-age").select("name")."""

from .query import Query

__all__ = ["Query"]
