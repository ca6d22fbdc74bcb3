"""What a customer is about to buy."""

from shop.catalogue import price


class Cart:
    def __init__(self) -> None:
        self._quantities: dict[str, int] = {}

    def add(self, name: str, quantity: int = 1) -> None:
        self._quantities[name] = self._quantities.get(name, 0) + quantity

    def total(self) -> int:
        """What it all costs, in cents."""
        return sum(price(name) * quantity for name, quantity in self._quantities.items())
