"""A stand-in GitHub: its REST API, git over HTTP, signed webhooks, and its failures, on one machine.

A plan is rehearsed against it with no account and no money, and the tests talk to it as they
would to the real one. `python -m rehearsal` runs it as a process; `rehearsal.server.Rehearsal`
runs it inside a test. It holds no secret worth stealing and is no substitute for GitHub. Beside it
stands one for the providers of models, `rehearsal.models`.
"""
