"""A remote repository with a person who works in it, our mirror of it, and a workspace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from forge.mirror import Mirror
from rehearsal.server import Rehearsal
from tests.forge.desk import BRANCH, NOBODY, TASK, Desk, Remote, Unprivileged, plain_git, write
from tests.forge.github_scene import PERSON, REPOSITORY, Canned, GitHubScene, canned_server


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forge's repository, a person's clone of it, and a home with its mirror and a workspace.

    Git finds its way by relative paths in all of them, so that each test works on a copy.
    """
    folder = tmp_path_factory.mktemp("forge")
    remote = Remote(folder / "forge" / "shop.git", folder / "person")
    remote.path.mkdir(parents=True)
    plain_git(remote.path, "init", "--quiet", "--bare", "--initial-branch=main")
    remote.clone.mkdir()
    plain_git(remote.clone, "init", "--quiet", "--initial-branch=main")
    plain_git(remote.clone, "remote", "add", "origin", "../forge/shop.git")
    write(remote.clone, {"README.md": "shop\n", "src/price.py": "PRICE = 1\n", ".gitignore": "*.log\nbuild/\n"})
    plain_git(remote.clone, "add", "--all")
    plain_git(remote.clone, "commit", "--quiet", "--message", "first")
    plain_git(remote.clone, "push", "--quiet", "--set-upstream", "origin", "main")
    mirror = Mirror(folder / "home", "acme/shop")
    base_sha = str(mirror.fetch(remote.url, None, "main")["main"])
    mirror.cut(_workspace(folder), start=base_sha, branch=BRANCH, base="main", base_sha=base_sha)
    return folder


@pytest.fixture
def remote(tmp_path: Path, made_once: Path) -> Remote:
    shutil.copytree(made_once / "forge", tmp_path / "forge")
    shutil.copytree(made_once / "person", tmp_path / "person")
    return Remote(tmp_path / "forge" / "shop.git", tmp_path / "person")


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    """A mirror that has not been made yet."""
    return Mirror(tmp_path / "home", "acme/shop")


@pytest.fixture
def desk(tmp_path: Path, made_once: Path, mirror: Mirror, remote: Remote) -> Desk:
    shutil.copytree(made_once / "home", tmp_path / "home")
    base_sha = remote.head("main")
    assert base_sha
    return Desk(mirror, remote, _workspace(tmp_path), base_sha)


def _workspace(folder: Path) -> Path:
    return folder / "home" / "workspaces" / TASK


@pytest.fixture
def unprivileged() -> Iterator[Unprivileged]:
    # Not below pytest's own directory, which only its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="watchbill-unprivileged-"))
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield Unprivileged(folder)
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def key_pair() -> tuple[bytes, str]:
    """An App's private key and the public one, both as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
async def github(tmp_path: Path, key_pair: tuple[bytes, str]) -> AsyncIterator[GitHubScene]:
    with Rehearsal(tmp_path / "github") as standin:
        made = _scene(standin, tmp_path, key_pair)
        yield made
        await made.api.close()


def _scene(standin: Rehearsal, folder: Path, key_pair: tuple[bytes, str]) -> GitHubScene:
    scene = standin.scene
    scene.account("acme", "Organization")
    scene.repository(REPOSITORY, files={"README.md": "shop\n"}, private=True)
    scene.collaborator(REPOSITORY, PERSON)
    app = scene.app("watchbill-test", public_key=key_pair[1])
    key = folder / "app.pem"
    key.write_bytes(key_pair[0])
    installation = scene.install("watchbill-test", REPOSITORY)
    return GitHubScene(standin, key, app.id, installation, folder / "persons-clone")


@pytest.fixture
def canned() -> Iterator[Canned]:
    with canned_server() as made:
        yield made
