"""The container installation, as far as it can be judged without a container engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from relay.settings import RelaySettings
from starter.local import temporal
from starter.local.telling import relay_stops_within
from webhooks.settings import WebhookSettings
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("watchbill:")}
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()


@pytest.mark.parametrize(
    ("door", "settings"), [("worker", WorkerSettings), ("webhooks", WebhookSettings), ("relay", RelaySettings)]
)
def test_every_variable_is_one_that_the_door_reads(door, settings):
    known = {f"WATCHBILL_{name.upper()}" for name in settings.model_fields}
    assert SERVICES[door]["environment"].keys() <= known


def test_every_command_is_a_watchbill_command():
    for service in OURS.values():
        command = [sys.executable, "-m", "starter", *service["command"], "--help"]
        subprocess.run(command, check=True, capture_output=True)


def test_no_secret_is_written_here_and_each_comes_from_a_file():
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|PWD|SECRET|TOKEN|KEY", variable):
                assert re.fullmatch(r"/run/secrets/\w+", value), f"{name}: {variable}"
                assert Path(value).name in service["secrets"], f"{name} does not get {value}"
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
    assert all(secret == {"file": f"docker/secrets/{name}"} for name, secret in COMPOSE["secrets"].items())
    assert not re.search(r"://[^/\s]*:[^/\s]*@", (ROOT / "docker-compose.yml").read_text())


def test_the_relay_gets_as_long_to_stop_as_it_may_need():
    assert SERVICES["relay"]["stop_grace_period"] == f"{relay_stops_within(SERVICES['relay']['environment']):g}s"


def test_every_image_is_pinned_to_a_version():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    for image in [*bases, *(service["image"] for service in SERVICES.values())]:
        assert re.search(r":\d+\.\d+", image), image


def test_temporal_is_the_version_that_the_tests_run_on():
    program = temporal.choose_program(ROOT / "temporal.db")
    version = ".".join(map(str, program.server))
    assert SERVICES["temporal"]["image"].endswith(f":{version}")
    assert SERVICES["temporal-schema"]["image"].endswith(f":{version}")


def test_the_namespace_gets_every_search_attribute_and_the_retention():
    script = SERVICES["temporal-namespace"]["command"][0]
    named = re.findall(r"--name (\w+) --type (\w+)", script)
    assert dict(named) == temporal.SEARCH_ATTRIBUTES
    assert "--retention 720h" in script


def test_nothing_starts_before_what_it_stands_on():
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            condition = how["condition"]
            assert condition in {"service_healthy", "service_completed_successfully"}
            assert (condition == "service_healthy") == ("healthcheck" in SERVICES[other]), f"{name} on {other}"
    assert SERVICES["worker"]["depends_on"].keys() == {"migrate", "temporal-namespace"}
    assert SERVICES["webhooks"]["depends_on"] == SERVICES["worker"]["depends_on"]


def test_what_talks_to_each_other_shares_a_network_and_databases_are_reached_by_nobody_else():
    def together(one: str, other: str) -> set[str]:
        return set(SERVICES[one]["networks"]) & set(SERVICES[other]["networks"])

    for door in ("worker", "webhooks"):
        assert together(door, "store")
        assert together(door, "temporal")
        assert not together(door, "temporal-database")
    assert not together("temporal", "store")
    assert all(COMPOSE["networks"][name]["internal"] for name in ("store", "temporal", "temporal-database"))


def test_agents_reach_the_relay_which_holds_no_key_and_is_reached_by_nobody_else():
    relay = SERVICES["relay"]
    told = relay["environment"]
    assert SERVICES["worker"]["environment"]["WATCHBILL_RELAY"] == f"http://relay:{told['WATCHBILL_RELAY_PORT']}"
    assert told["WATCHBILL_RELAY_NAMES"] == "relay"
    assert relay["secrets"] == ["store_password"]
    assert "volumes" not in relay
    assert "ports" not in relay
    assert COMPOSE["networks"]["agents"]["internal"]
    assert {name for name, service in SERVICES.items() if "agents" in service["networks"]} == {"relay", "worker"}
    assert not set(relay["networks"]) & {"temporal", "temporal-database"}


def test_only_this_machine_reaches_what_is_published():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_our_containers_hold_no_privilege_and_the_home_outlives_them():
    assert DOCKERFILE.index("\nUSER watchbill") < DOCKERFILE.index("\nENTRYPOINT")
    for service in OURS.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"]
    home = re.search(r"WATCHBILL_HOME=(\S+)", DOCKERFILE)
    assert home
    assert SERVICES["worker"]["volumes"] == [f"home:{home[1]}"]


def test_the_image_gets_every_room_and_no_secret():
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms <= allowed
    assert not any(name.startswith("docker/secrets") for name in allowed)


def test_scripts_in_it_are_well_formed():
    scripts = [service["command"][-1] for service in SERVICES.values() if "entrypoint" in service]
    assert len(scripts) == 3
    for script in scripts:
        subprocess.run(["sh", "-n"], input=script.replace("$$", "$"), text=True, check=True)


@pytest.fixture
def container(tmp_path: Path) -> dict[str, str]:
    """What the entrypoint finds: secrets, and a `watchbill` that tells what it was given."""
    subprocess.run([ROOT / "docker/make-secrets", tmp_path / "secrets"], check=True, capture_output=True)
    watchbill = tmp_path / "watchbill"
    watchbill.write_text(
        '#!/bin/sh\necho "$@"\n[ -z "${PGPASSFILE:-}" ] || { cat "$PGPASSFILE"; ls -l "$PGPASSFILE"; }\n'
    )
    watchbill.chmod(0o755)
    return {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TMPDIR": str(tmp_path),
        "WATCHBILL_SECRETS": str(tmp_path / "secrets"),
    }


def entrypoint(environment: dict[str, str]) -> list[str]:
    command = [str(ROOT / "docker/entrypoint"), "worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_password_reaches_the_driver_through_a_file_of_its_own(container, tmp_path):
    secret = tmp_path / "secrets/store_password"
    command, line, listing = entrypoint(container)
    assert command == "worker"
    assert line == f"*:*:*:*:{secret.read_text()}"
    assert listing.startswith("-rw-------")

    secret.chmod(0o644)
    secret.write_text("a:b\\c")
    assert entrypoint(container)[1] == "*:*:*:*:a\\:b\\\\c"

    secret.unlink()
    assert entrypoint(container) == ["worker"]


def test_secrets_are_made_once_for_their_owner_alone(tmp_path):
    folder = tmp_path / "secrets"
    make = [str(ROOT / "docker/make-secrets"), str(folder)]
    said = subprocess.run(make, capture_output=True, text=True, check=True).stdout
    first = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(first) | {"github_app_key"} == COMPOSE["secrets"].keys()
    assert all(len(secret) == 64 for secret in first.values())
    assert len(set(first.values())) == len(first)
    assert "private key" in said
    assert folder.stat().st_mode & 0o777 == 0o700

    subprocess.run(make, capture_output=True, check=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == first


@pytest.mark.skipif(
    not shutil.which("docker")
    or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0,
    reason="needs the compose plugin of Docker's client",
)
def test_compose_itself_accepts_the_file():
    environment = {**os.environ, "WATCHBILL_GITHUB_APP_ID": "7"}
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=ROOT, env=environment, check=True)
