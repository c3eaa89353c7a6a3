import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.secrets import entropy, find_secrets, is_secret_field

# Put together at run time, so that no scanner takes these lines for real keys.
OPENAI = "sk-" + "proj-Ab12Cd34Ef56Gh78Ij90"
GITHUB = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
SLACK = "xoxb-" + "123456789012-abcdefghijkl"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----"
URL = "postgres://app:hunter2@db.internal:5432/main"


def covered(text: str) -> str:
    """``text`` with every secret character as █."""
    marked = list(text)
    for span in find_secrets(text):
        marked[span.start : span.end] = "█" * (span.end - span.start)
    return "".join(marked)


@pytest.mark.parametrize("secret", [OPENAI, GITHUB, AWS, SLACK, JWT, PEM, URL])
@pytest.mark.parametrize("frame", ["{}", "use {} please", '{{"k": "{}"}}', "({})", "x={};"])
def test_a_secret_is_covered_wholly_in_any_frame(secret: str, frame: str) -> None:
    before, after = frame.format("\x00").split("\x00")

    marked = covered(frame.format(secret))

    assert marked[len(before) : len(marked) - len(after)].strip("█") == ""


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123_456", "abc.def-123_456"),
        ("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("Bearer q8Zk2LmN0pRs", "q8Zk2LmN0pRs"),
        ("password=hunter", "hunter"),
        ("DB_PASSWORD: s3cret!", "s3cret!"),
        ('"password": "correct horse battery"', "correct horse battery"),
        ("Server=db;User=sa;Pwd=Blue42;", "Blue42"),
        ("api_key = 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
        ("export ACCESS_TOKEN='a1b2c3d4e5'", "a1b2c3d4e5"),
        ("signature=Zx9Kq2Wm7Rt4Yp1Lc8Vb3Nd6Fg", "Zx9Kq2Wm7Rt4Yp1Lc8Vb3Nd6Fg"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEcut off", "MIIEcut off"),
    ],
)
def test_the_secret_part_is_covered(text: str, secret: str) -> None:
    assert secret not in covered(text)


@pytest.mark.parametrize(
    "text",
    [
        "Invoice INV-2024-001, total 1,234.50 EUR, due 2024-05-01.",
        "The password is required. Password: required",
        "max_tokens: 100000 and temperature=0.7",
        "The token count = fourteen",
        "https://example.com/path?page=2",
        "task-list and sketch of risk-averse people",
        "sha256: " + "0123456789abcdef" * 4,
        "He was the bearer of information",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert find_secrets(text) == []


@given(st.text(max_size=80))
def test_spans_lie_inside_the_text(text: str) -> None:
    assert all(0 <= span.start < span.end <= len(text) for span in find_secrets(text))


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "apiKey",
        "api-key",
        "access_token",
        "clientSecret",
        "Authorization",
        "token",
    ],
)
def test_fields_that_hold_secrets_are_known_by_name(name: str) -> None:
    assert is_secret_field(name)


@pytest.mark.parametrize(
    "name", ["tokens", "max_tokens", "name", "secretary", "passwords_seen", "prompt_token_ids"]
)
def test_other_fields_are_not(name: str) -> None:
    assert not is_secret_field(name)


def test_entropy_is_in_bits() -> None:
    assert entropy("abcd") == 2.0
    assert entropy("aaaa") == 0.0


@pytest.mark.parametrize("piece", ["a", "a.", "a://:", "password=", "token", "sk-", "bearer "])
def test_hostile_text_is_searched_in_linear_time(piece: str) -> None:
    started = time.thread_time()

    find_secrets(piece * (30_000 // len(piece)))

    assert time.thread_time() - started < 10.0
