"""What is found, what is kept, and that nothing asks the network."""

import socket
import time

import pytest

from apps.core.errors import Refused
from apps.feedback import anonymizer, detectors, services
from apps.feedback.rules import Rules, rules_checked
from packs.starter.tasks import generate


def masked(text: str, rules: Rules | None = None, known: dict[str, str] | None = None) -> str:
    return anonymizer.anonymize_text(text, rules or Rules(), known)


@pytest.mark.parametrize(
    ("text", "clear", "placeholder"),
    [
        ("Hi, this is Omar Kumar.", "Omar", "<PERSON_1>"),
        ("Regards,\nJulia Novak", "Julia", "<PERSON_1>"),
        ("The ticket of Hyun Park was closed", "Hyun", "<PERSON_1>"),
        ("EUR 5.00 / RE-1 / Ritu Nowesba", "Ritu", "<PERSON_1>"),
        ("Write to omar@kumar.example today", "omar@", "<EMAIL_ADDRESS_1>"),
        ("Write to ops@corp.internal today", "corp.internal", "<EMAIL_ADDRESS_1>"),
        ("Card 4111 1111 1111 1111 was charged", "4111", "<CREDIT_CARD_1>"),
        ("IBAN DE89370400440532013000", "DE89", "<IBAN_CODE_1>"),
        ("Call +1 415 555 0132 now", "415 555", "<PHONE_NUMBER_1>"),
        ("手机 13812345678 收", "13812345678", "<PHONE_NUMBER_1>"),
        ("ID 11010519491231002X", "110105", "<NATIONAL_ID_1>"),
        ("SSN 536-90-4399", "536-90", "<NATIONAL_ID_1>"),
        ("Ship to 12 Baker Street, London", "Baker", "<ADDRESS_1>"),
        ("Authorization: Bearer sk-abcDEF1234567890abcd", "sk-abc", "<"),
        ("postgres://app:hunter22@db.corp.example/prod", "hunter22", "<CONNECTION_STRING_1>"),
        ("Server 10.20.30.40 is down", "10.20", "<IP_ADDRESS_1>"),
    ],
)
def test_personal_data_and_secrets_are_masked(text, clear, placeholder):
    result = masked(text)

    assert clear not in result
    assert placeholder in result


@pytest.mark.parametrize(
    "text",
    [
        "Invoice INV-4211 of 2024-03-01\nNorden Tools\nTotal 1,204.50 EUR",
        "Blue Harbor Foods | No RE-7703 | 31.01.2024 | due 14.02.2024 | SEK 9,310.00",
        '{"invoice": "INV-42", "total": 120.5, "currency": "CHF", "date": "2024-05-06"}',
        "Please pay USD 14,000.00 for order 20231234567 by 3 March 2025.",
        "Write apply(values): the largest of values. Use Python.",
        "ID 110105194912310021 fails its checksum",
        "The United Kingdom office moved to New York in March.",
        "Machine Learning models need clean data.",
    ],
)
def test_documents_keep_numbers_dates_amounts_and_firms(text):
    assert masked(text) == text


@pytest.mark.parametrize("label", ["Queue", "Ticket", "Invoice", "Subject", "Answer", "Policy", "Total"])
@pytest.mark.parametrize(
    "text", ["{}: a, b or c?", "Sort this.\n{}: account or billing?", "Late.\n- **{}**: x", "Sort it. {}:"]
)
def test_a_label_in_front_of_a_colon_is_no_person(label, text):
    assert masked(text.format(label)) == text.format(label)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Yuto: hello there\nAnna: hello", "Anna"),
        ("From: Anna Berg", "Berg"),
        ("From: Anna Berg\nBerg: where is my parcel?", "Berg"),
        ("Agent: how can I help?\nKeller: my parcel is late", "Keller"),
        ("Signed, Yuto Tanaka.\nTanaka: hello", "Tanaka"),
    ],
)
def test_who_speaks_in_front_of_a_colon_is_a_person(text, name):
    assert name not in masked(text)


def test_characters_that_no_database_keeps_are_replaced_everywhere():
    content = {"messages": [{"role": "user", "content": "a\0b"}], "tool_calls": [{"\0": "\ud800"}]}

    done = anonymizer.anonymize_content(content, Rules())

    assert done.content["messages"][0]["content"] == "a\ufffdb"
    assert done.content["tool_calls"] == [{"\ufffd": "\ufffd"}]


def test_same_person_is_one_pseudonym_over_the_whole_exchange():
    done = anonymizer.anonymize_content(
        {
            "messages": [{"role": "user", "content": "Refund Omar Kumar, omar@kumar.example."}],
            "answer": '{"name":"refund","arguments":{"to":"omar@kumar.example"}}',
            "correction": "Omar Kumar gets it.",
        },
        Rules(),
    )

    assert done.content["messages"][0]["content"] == "Refund <PERSON_1>, <EMAIL_ADDRESS_1>."
    assert done.content["answer"] == '{"name":"refund","arguments":{"to":"<EMAIL_ADDRESS_1>"}}'
    assert done.content["correction"] == "<PERSON_1> gets it."
    assert {span["path"] for span in done.spans} == {"messages.0.content", "answer", "correction"}


def test_what_is_kept_of_a_value_is_a_keyed_hash():
    done = anonymizer.anonymize_content({"answer": "Omar Kumar"}, Rules())

    assert list(done.pseudonyms.values()) == ["<PERSON_1>"]
    assert "omar" not in str(done.pseudonyms).lower()
    assert masked("Karen Lewis met Omar Kumar.", known=done.pseudonyms) == "<PERSON_2> met <PERSON_1>."


def test_anonymizing_twice_changes_nothing():
    once = masked("Dear Karen Lewis, call +1 415 555 0132 or write to karen@lewis.example.")

    assert masked(once) == once


def test_rules_allow_deny_patterns_keep_and_thresholds():
    text = "Omar Kumar of Project Heron ordered ORD-123456 from 10.20.30.40."
    rules = rules_checked(
        {
            "allow": ["Omar Kumar"],
            "deny": ["project heron"],
            "patterns": [{"entity": "ORDER_NUMBER", "regex": r"ORD-\d{6}"}],
            "keep": ["IP_ADDRESS"],
            "thresholds": {"PERSON": 0.9},
        }
    )

    assert masked(text, rules) == "Omar Kumar of <DENIED_1> ordered <ORDER_NUMBER_1> from 10.20.30.40."


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"patterns": [{"entity": "X_Y", "regex": "("}]}, "patterns: X_Y"),
        ({"patterns": [{"entity": "X_Y", "regex": "a*"}]}, "matches the empty text"),
        ({"patterns": [{"entity": "X_Y", "regex": "(a+)+$"}]}, "takes too long"),
        ({"patterns": [{"entity": "order", "regex": "a"}]}, "is not an entity"),
        ({"patterns": ["a"]}, "exactly an entity and a regex"),
        ({"deny": ["a"]}, "too short"),
        ({"thresholds": {"PERSON": 2}}, "between 0 and 1"),
        ({"keep": ["API_KEY"]}, "secrets are always masked"),
        ({"thresholds": {"API_KEY": 1.0}}, "secrets are always masked"),
        ({"allow": "x"}, "allow: a list"),
    ],
)
def test_impossible_rule_is_named(rules, words):
    with pytest.raises(Refused, match=words):
        rules_checked(rules)


@pytest.mark.django_db
def test_rules_are_tried_without_being_stored_and_saved_as_revisions(project, actor):
    rules = {"deny": ["Heron"]}

    tried = services.rules_try(rules=rules, text="Project Heron")
    assert tried.content["text"] == "Project <DENIED_1>"
    assert anonymizer.rules_in_force(project).number == 0

    services.rules_revise(project=project, rules=rules, by=actor)
    services.rules_revise(project=project, rules={}, by=actor)

    assert anonymizer.rules_in_force(project).number == 2


def test_image_is_refused():
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xx"}}

    with pytest.raises(anonymizer.CannotAnonymize, match="cannot be anonymized"):
        anonymizer.anonymize_content({"messages": [{"role": "user", "content": [part]}]}, Rules())


def test_no_network_is_touched(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    detectors._engine.cache_clear()

    result = masked("Omar Kumar, omar@kumar.example, https://kumar.example/a?b=c")

    assert result == "<PERSON_1>, <EMAIL_ADDRESS_1>, <URL_1>"


def test_anonymization_is_fast_enough_for_traffic():
    tasks = generate("invoice_fields", seed=9, count=40)
    anonymizer.get_anonymizer()

    started = time.thread_time()
    for task in tasks:
        anonymizer.anonymize_content(
            {"messages": [{"role": "user", "content": task.messages[-1].content}], "answer": "x"}, Rules()
        )

    assert (time.thread_time() - started) / len(tasks) < 0.2


@pytest.mark.parametrize(
    ("number", "valid"),
    [("11010519491231002X", True), ("110105194912310021", False), ("440524188001010014", True)],
)
def test_checksum_of_chinese_ids(number, valid):
    assert detectors.chinese_id_valid(number) is valid
