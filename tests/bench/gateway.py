"""LiteLLM's proxy with a budget, in an environment of its own, for what a gateway that keeps budgets costs elsewhere.

It keeps its budgets in memory here, as it does without a database: that is the less that it can do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starter.local import ports
from tests.bench.figures import Skipped
from tests.bench.load import Server, serving
from tests.store.spending import MODEL

VERSION = "1.108.7"
_KEY = "sk-bench"
_INSTALL_SECONDS = 1200
_CONFIG = f"""\
model_list:
  - model_name: {MODEL}
    litellm_params:
      model: anthropic/{MODEL}
      api_base: URL/models/anthropic
      api_key: a-key
router_settings:
  provider_budget_config:
    anthropic:
      budget_limit: 1000000
      time_period: 1d
general_settings:
  master_key: {_KEY}
litellm_settings:
  telemetry: false
"""


def find_litellm(*, quick: bool) -> Path | Skipped:
    """Its program, which is installed into the user's cache when it is first wanted, and stays there."""
    what = f"relay / LiteLLM {VERSION} with a budget"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "watchbill-bench" / f"litellm-{VERSION}"
    program, made = place / "bin" / "litellm", place / "made"
    if made.exists():
        return program
    if quick:
        return Skipped(what, "it is not installed, and a quick run does not install it")
    print(f"  installing LiteLLM {VERSION} into {place}; this takes minutes", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    try:
        _run(sys.executable, "-m", "venv", str(place))
        _run(str(place / "bin" / "pip"), "install", "--quiet", f"litellm[proxy]=={VERSION}")
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return Skipped(what, f"it cannot be installed: {said.strip().splitlines()[-1] if said.strip() else error!r}")
    made.touch()
    return program


@asynccontextmanager
async def serving_litellm(program: Path, provider: str, folder: Path) -> AsyncIterator[Server]:
    """One process of it, before a provider at this URL."""
    (port,) = ports.choose((0,))
    config = folder / "litellm.yaml"
    config.write_text(_CONFIG.replace("URL", provider))
    command = (str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1")
    told = {"PYTHONPATH": "", "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    async with serving("litellm", command, port, folder, told) as pid:
        yield Server(port, pid, "/v1/messages", _KEY)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
