"""What the shop sells, and for how much."""

import csv
from pathlib import Path

with Path(__file__).with_name("catalogue.csv").open(newline="") as file:
    PRICES = {row["name"]: int(row["cents"]) for row in csv.DictReader(file)}


def price(name: str) -> int:
    """The price in cents; KeyError for what we do not sell."""
    return PRICES[name]
