"""`watchbill up` and the home that it runs in: what it is told, what it remembers, and what others find there."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import pytest

from domain.errors import NotFound
from starter.copies import Copies
from starter.exits import Exit
from starter.local import addresses
from starter.local.addresses import Addresses, Claim
from tests.starter.conftest import SHOP, Watchbill, plan


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    for name, text in SHOP.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def unnamed(watchbill) -> Watchbill:
    """The command where nobody names a Temporal."""
    return replace(watchbill, settings={})


@pytest.mark.parametrize("arguments", [["status"], ["submit", "plan.md"], ["pause", "faster"], ["worker"], ["rebuild"]])
def test_where_an_installation_is_down_commands_say_so_and_ask_nobody_else(unnamed, write, arguments):
    write("plan.md", plan("faster"))
    Claim(unnamed.home).release()
    done = unnamed(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.UNREACHABLE, "", 1), done.stderr
    assert f"Nothing is up in this home ({unnamed.home}); start it with: watchbill up" in done.stderr


def test_where_an_installation_is_down_the_store_is_still_read(unnamed, published_graph):
    Claim(unnamed.home).release()
    done = unnamed("status", "faster", WATCHBILL_STORE_URL=published_graph)
    assert done.returncode == Exit.DONE
    assert "Nothing is up in this home" in done.stderr


@pytest.mark.parametrize("path", ["nowhere", "shop/README.md"])
@pytest.mark.parametrize("copied", [False, True])
def test_a_stand_in_of_what_is_no_folder_is_refused_also_where_there_is_a_copy(unnamed, shop, path, copied):
    if copied:
        Copies(unnamed.home).of({"acme/shop": shop})
    done = unnamed("up", "--stand-in", f"acme/shop={path}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.NOT_FOUND, "", 1), done.stderr
    assert f"{path}, to be copied as acme/shop, is n" in done.stderr


def test_a_copy_that_could_not_be_made_is_not_taken_for_one(tmp_path, shop):
    empty = tmp_path / "empty"
    (empty / ".git").mkdir(parents=True)
    copies = Copies(tmp_path / "home")
    with pytest.raises(NotFound):
        copies.of({"acme/shop": empty})
    made = copies.of({"acme/shop": shop})["acme/shop"]
    assert [each.name for each in made.parent.iterdir()] == [made.name]


def test_what_the_stand_in_has_had_is_remembered_together(tmp_path):
    copies = Copies(tmp_path)
    assert copies.remembered() == {}
    copies.remember(["acme/shop"])
    copies.remember(["acme/till"])
    assert set(copies.remembered()) == {"acme/shop", "acme/till"}


def test_up_where_it_is_up_already_says_so_before_anything_else(unnamed):
    claim = Claim(unnamed.home)
    claim.write(Addresses("127.0.0.1:5555", "http://127.0.0.1:5556", "http://127.0.0.1:5557", "http://a-stand-in", 7))
    for arguments in ([], ["--stand-in", "acme/shop=nowhere"]):
        done = unnamed("up", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (Exit.REFUSED, 1)
        assert "already up" in done.stderr
        assert "a stand-in GitHub at http://a-stand-in" in done.stderr
    claim.release()


def test_up_without_credentials_in_a_home_without_a_stand_in_names_both_ways(unnamed):
    done = unnamed("up")
    assert (done.returncode, "--stand-in" in done.stderr) == (Exit.USAGE, True)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_home_that_was_begun_with_a_stand_in_starts_it_again_and_says_so(unnamed, shop, tmp_path, write):
    first, before = _up(unnamed, "--stand-in", f"acme/shop={shop}")
    assert unnamed("submit", write("plan.md", plan("faster"))).returncode == Exit.DONE
    first.send_signal(signal.SIGINT)
    first.communicate()
    shop.rename(tmp_path / "moved")

    unnamed.settings["WATCHBILL_GITHUB_TOKEN_FILE"] = str(tmp_path / "token")
    again, found = _up(unnamed)
    assert found.github == before.github
    assert "already up" in unnamed("up").stderr
    assert unnamed("submit", write("more.md", plan("more"))).returncode == Exit.DONE
    again.send_signal(signal.SIGINT)
    said, noted = again.communicate()
    assert "begun with a stand-in GitHub, which starts again as it was, with acme/shop" in said
    assert "credentials for GitHub in the settings are not used here" in noted
    assert "Stopping: worker, webhooks, relay, temporal, stand-in" in noted
    assert again.returncode == Exit.DONE


def _up(watchbill, *arguments):
    process = watchbill.start("up", *arguments)
    while (found := addresses.read(watchbill.home)) is None:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process, found
