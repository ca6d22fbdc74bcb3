"""Start a supervisor: `python -I -S supervise.py <run folder> <descriptor of its lock>`.

A script of its own because Python compiles a script at every start, but a module only once.
"""

from __future__ import annotations

import os
import sys

# Last, so that nothing beside this package can stand in for a standard module.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runtimes.supervisor import supervise

supervise(sys.argv[1], int(sys.argv[2]))
# Nothing is buffered, and taking an interpreter apart costs a tenth of all that the supervisor does.
os._exit(0)
