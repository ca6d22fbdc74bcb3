"""The rules: identities, plan documents, lifecycles, money, and what to do next about each.

Pure functions over plain values: no I/O, no clock, no randomness, no framework. What they need to know
is given to them, and what they answer is carried out elsewhere.
"""
