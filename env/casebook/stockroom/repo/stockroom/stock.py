"""What lies where."""


class OutOfStock(Exception):
    """There is not enough of an article."""

    def __init__(self, sku, missing):
        super().__init__("{} short by {}".format(sku, missing))
        self.sku = sku
        self.missing = missing


class Stock:
    """Quantities by article and bin. A bin that becomes empty is dropped."""

    def __init__(self):
        self._bins = {}

    def put(self, sku, bin_name, quantity):
        """Add `quantity` pieces to a bin."""
        if quantity <= 0:
            raise ValueError("quantity must be positive")
        bins = self._bins.setdefault(sku, {})
        bins[bin_name] = bins.get(bin_name, 0) + quantity

    def count(self, sku):
        """Return how many pieces there are in all bins."""
        return sum(self._bins.get(sku, {}).values())

    def layout(self, sku):
        """Return the quantities of an article by bin."""
        return dict(self._bins.get(sku, {}))

    def pick(self, sku, quantity):
        """Take pieces from the smallest bins first; return (bin, pieces) for each bin used.

        Raises:
            OutOfStock: the bins do not hold enough. What they hold has been taken then.
        """
        bins = self._bins.get(sku, {})
        picked = []
        lacking = quantity
        for name in sorted(bins, key=lambda name: (bins[name], name)):
            taken = min(bins[name], lacking)
            if taken == 0:
                break
            bins[name] -= taken
            if bins[name] == 0:
                del bins[name]
            picked.append((name, taken))
            lacking -= taken
        if lacking > 0:
            raise OutOfStock(sku, lacking)
        return picked

    def snapshot(self):
        """Return the state, for `restore`."""
        return {sku: dict(bins) for sku, bins in self._bins.items()}

    def restore(self, state):
        """Go back to the state of a snapshot, which is used up by this."""
        self._bins = state
