"""Doctests among pytest's tests: they are in the code that they test, so their file is not a test file."""

from __future__ import annotations

__all__ = ["is_doctest"]


def is_doctest(test: str) -> bool:
    """Whether a test's id is that of a doctest in a module.

    pytest names it after the object: `shop/cart.py::shop.cart.Cart.add`; from inside a `src` folder the module's
    name begins later, so any tail of the path counts.
    """
    path, _, name = test.partition("::")
    if not path.endswith(".py") or "::" in name:
        return False
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    tails = (".".join(parts[start:]) for start in range(len(parts)))
    return any(name == tail or name.startswith(f"{tail}.") for tail in tails)
