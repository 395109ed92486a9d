"""Who may ask: names, tokens, other sites; and what the answers forbid a browser."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from gumshoe.eval.view.library import Library
from gumshoe.eval.web import is_loopback
from support.eval.viewer import get, serving


@pytest.fixture(scope="module")
def guarded(library: Library) -> Iterator[str]:
    with serving(library, token="s3cret") as address:
        yield address


def test_a_strict_content_policy(site: str) -> None:
    policy = get(site).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for path in ("/app.js", "/api/overview", "/nothing", "/api/episode/none"):
        headers = get(f"{site}{path}").headers
        assert headers["content-security-policy"] == policy
        assert headers["x-content-type-options"] == "nosniff"


def test_without_the_token_there_is_nothing(guarded: str) -> None:
    for path in ("/", "/app.js", "/api/overview", "/api/overview?token=wrong"):
        assert get(f"{guarded}{path}").status_code == 401
    wrong = {"authorization": "Bearer wrong", "cookie": "gumshoe_token=wrong"}
    assert get(f"{guarded}/api/overview", headers=wrong).status_code == 401


def test_the_token_opens_once_and_becomes_a_cookie(guarded: str) -> None:
    with httpx2.Client(timeout=180) as client:
        first = client.get(f"{guarded}//evil.example/?token=s3cret&x=1")
        assert first.status_code == 303
        assert first.headers["location"] == "/evil.example/?x=1"
        assert "HttpOnly" in first.headers["set-cookie"]
        assert "SameSite=strict" in first.headers["set-cookie"]
        assert client.get(f"{guarded}/api/overview").status_code == 200
    bearer = {"authorization": "Bearer s3cret"}
    assert get(f"{guarded}/api/overview", headers=bearer).status_code == 200


def test_with_a_token_numeric_names_are_answered_and_others_not(guarded: str) -> None:
    bearer = {"authorization": "Bearer s3cret"}
    assert get(f"{guarded}/", headers={**bearer, "host": "10.1.2.3"}).status_code == 200
    assert get(f"{guarded}/", headers={**bearer, "host": "evil.example"}).status_code == 421


def test_what_is_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "10.0.0.1", "box")] == [
        *(True, True, True),
        *(False, False, False),
    ]
