"""A whole installation on one machine.

Temporal, the doors and, for rehearsals, a stand-in GitHub run as supervised processes under one home
directory, and can be reached from this machine alone.
"""
