import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self) -> None:
        self.assertEqual(Cart().total(), 0)

    def test_the_total_counts_every_piece(self) -> None:
        cart = Cart()
        cart.add("tea pot")
        cart.add("espresso cup", 2)
        self.assertEqual(cart.total(), 5900)
