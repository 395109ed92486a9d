"""Orders and reservations."""

from dataclasses import dataclass, field
from typing import Dict, List, Tuple

from .stock import OutOfStock


@dataclass
class Order:
    """Lines of (article, quantity)."""

    number: int
    lines: List[Tuple[str, int]]
    picks: Dict[str, List[Tuple[str, int]]] = field(default_factory=dict)


class Desk:
    """Takes orders for a stock.

    Args:
        stock: where the articles come from.
        reorder_at: an article with this many pieces or fewer is to be reordered.
    """

    def __init__(self, stock, reorder_at=5):
        self.stock = stock
        self.reorder_at = reorder_at
        self._reserved = {}
        self._numbers = 0

    def reserve(self, sku, quantity):
        """Keep pieces aside; return False when fewer are available."""
        if self.available(sku) < quantity:
            return False
        self._reserved[sku] = self._reserved.get(sku, 0) + quantity
        return True

    def release(self, sku, quantity):
        """Give reserved pieces back; never more than are reserved."""
        self._reserved[sku] = max(0, self._reserved.get(sku, 0) - quantity)

    def available(self, sku):
        """Return the pieces that are there and not reserved."""
        return self.stock.count(sku) - self._reserved.get(sku, 0)

    def fill(self, lines):
        """Fill an order whole.

        Raises:
            OutOfStock: a line cannot be filled. The stock is as it was before then.
        """
        before = self.stock.snapshot()
        order = Order(self._numbers + 1, list(lines))
        try:
            for sku, quantity in order.lines:
                if self.available(sku) < quantity <= self.stock.count(sku):
                    raise OutOfStock(sku, quantity - self.available(sku))
                order.picks.setdefault(sku, []).extend(self.stock.pick(sku, quantity))
        except OutOfStock:
            self.stock.restore(before)
            raise
        self._numbers = order.number
        return order

    def to_reorder(self, skus):
        """Return the articles that are running low, fewest pieces first."""
        low = [sku for sku in skus if self.available(sku) <= self.reorder_at]
        return sorted(low, key=lambda sku: (self.available(sku), sku))
