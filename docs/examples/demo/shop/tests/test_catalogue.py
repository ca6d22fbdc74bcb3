import unittest

from shop.catalogue import price


class CatalogueTest(unittest.TestCase):
    def test_a_price_is_in_cents(self) -> None:
        self.assertEqual(price("tea pot"), 3400)

    def test_what_we_do_not_sell_has_no_price(self) -> None:
        with self.assertRaises(KeyError):
            price("sofa")
