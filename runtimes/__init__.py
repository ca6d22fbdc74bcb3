"""Runtimes make runs: the port that each one implements, the supervisor that owns a run's processes,
and the worker's side of the folder through which the two talk.
"""
