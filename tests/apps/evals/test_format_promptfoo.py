"""promptfoo configurations: prompts × tests, assertions, and YAML that must not be trusted."""

import json

import pytest

from apps.evals.formats import Unreadable
from tests.apps.evals.reading import judged, read, reasons


def config(*assertions, variables="{x: q}", more="", prompts="['Say {{x}}']"):
    listed = "".join(f"\n      - {json.dumps(each)}" for each in assertions)
    test = f"  - description: one\n    vars: {variables}\n    assert:{listed}\n"
    return f"prompts: {prompts}\ntests:\n{test}{more}"


def case(*assertions, **options):
    (task,) = read(("promptfooconfig.yaml", config(*assertions, **options))).tasks
    return task


@pytest.mark.parametrize(
    ("assertion", "right", "wrong"),
    [
        ({"type": "equals", "value": "Yes"}, "Yes", "yes"),
        ({"type": "equals", "value": {"a": 1}}, '{"a": 1}', '{"a": 2}'),
        ({"type": "contains", "value": "{{x}}"}, "a q b", "a b"),
        ({"type": "icontains", "value": "YES"}, "oh yes", "no"),
        ({"type": "contains-all", "value": ["a", "b"]}, "b a", "a"),
        ({"type": "contains-any", "value": 'x, "y, z"'}, "y, z", "y z"),
        ({"type": "icontains-all", "value": ["A", "B"]}, "b a", "a"),
        ({"type": "icontains-any", "value": ["A", "B"]}, "b", "c"),
        ({"type": "starts-with", "value": "Dear"}, "Dear you", "Oh Dear"),
        ({"type": "regex", "value": r"\d{3}"}, "a 123 and 456 b", "a 12 b"),
        ({"type": "regex", "value": "^(?<word>ab)$"}, "ab", "cab"),
        ({"type": "is-json"}, '{"a": 1}', "{a: 1}"),
        ({"type": "is-json", "value": {"type": "object", "required": ["a"]}}, '{"a": 1}', '{"b": 1}'),
        ({"type": "rouge-n", "value": "one two three four"}, "one two three four", "five"),
        ({"type": "bleu", "value": "a b c d e", "threshold": 0.4}, "a b c d e", "no"),
        ({"type": "not-contains", "value": "sorry"}, "fine", "so sorry"),
        ({"type": "not-contains-any", "value": ["a", "b"]}, "c", "b"),
        ({"type": "not-equals", "value": "no"}, "yes", "no"),
        ({"type": "not-regex", "value": r"\d+"}, "none", "12"),
    ],
)  # fmt: skip
def test_an_assertion_means_what_it_means_there(assertion, right, wrong):
    task = case(assertion)

    assert judged(task, right) == "passed"
    assert judged(task, wrong) == "failed"


def graded(task, answer):
    namespace: dict = {}
    exec(task.verifier.params["source"], namespace)
    return namespace["grade"]({"output_text": answer}, task.verifier.params["item"])


def test_levenshtein_counts_edits():
    task = case({"type": "levenshtein", "value": "kitten", "threshold": 3})

    assert graded(task, "sitting") == 1.0
    assert graded(task, "sitting!!") == 0.0


@pytest.mark.parametrize(
    ("code", "threshold", "right", "wrong"),
    [
        ("len(output) > 3", None, "abcd", "ab"),
        ("output == context['vars']['x']", None, "q", "r"),
        ("n = len(output)\nreturn n / 10", 0.5, "abcdef", "ab"),
        ("{'pass': 'a' in output, 'score': 1}", None, "a", "b"),
    ],
)
def test_python_assertions_run_as_they_do_there(code, threshold, right, wrong):
    assertion = {"type": "python", "value": code, **({"threshold": threshold} if threshold else {})}

    task = case(assertion)

    assert graded(task, right) == 1.0
    assert graded(task, wrong) == 0.0


def test_a_json_somewhere_and_valid_tool_calls_are_programs():
    schema = "{type: object, required: [n], properties: {n: {type: integer}}}"
    function = "{type: function, function: {name: f, parameters: " + schema + "}}"
    tools = "providers: [{id: x, config: {tools: [" + function + "]}}]"
    found = case({"type": "contains-json"})
    called = case({"type": "is-valid-openai-tools-call"}, more=tools)

    assert graded(found, 'so: {"a": [1]} there') == 1.0
    assert graded(found, "nothing {here") == 0.0
    assert graded(called, '{"tool_calls": [{"function": {"name": "f", "arguments": "{\\"n\\": 1}"}}]}') == 1.0
    assert (
        graded(called, '{"tool_calls": [{"function": {"name": "f", "arguments": "{\\"n\\": \\"a\\"}"}}]}')
        == 0.0
    )
    assert graded(called, '{"tool_calls": [{"function": {"name": "g", "arguments": "{}"}}]}') == 0.0
    assert called.tools[0]["function"]["name"] == "f"


def test_rubrics_and_facts_go_to_judges():
    task = case(
        {"type": "llm-rubric", "value": "is polite", "threshold": 0.8},
        {"type": "factuality", "value": "Paris is the capital"},
    )

    rubric, facts = task.verifier.params["parts"]
    assert (rubric["params"]["criteria"], rubric["params"]["threshold"]) == (["is polite"], 0.8)
    assert facts["params"]["criteria"][0].endswith("Paris is the capital")


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "javascript", "value": "output.length"}, "JavaScript is not run here"),
        ({"type": "latency", "threshold": 5}, "latency is measured with every result"),
        ({"type": "cost", "threshold": 5}, "cost is measured with every result"),
        ({"type": "similar", "value": "x"}, "compares embeddings"),
        ({"type": "made-up"}, "no equivalent here"),
        ({"type": "contains", "value": "file://x.txt"}, "files are not followed"),
        ({"type": "contains", "value": "{{ gone }}"}, "which is not there"),
        ({"type": "contains", "value": "x", "weight": 0}, "decides nothing"),
        ({"type": "python", "value": "this is no code"}, "its code is not Python"),
        ({"type": "regex", "value": "(a+)+"}, "repeats something that itself repeats"),
        ({"type": "llm-rubric", "value": "x", "rubricPrompt": "y"}, "a prompt of its own"),
    ],
)
def test_what_has_no_equivalent_is_listed_by_name_and_line_and_the_rest_is_kept(assertion, reason):
    found = read(("c.yaml", config({"type": "contains", "value": "a"}, assertion)))

    (left,) = found.left_out
    assert len(found.tasks) == 1
    assert reason in left.reason
    assert left.name == f"{assertion['type']} of one"
    assert left.where == "line 7"


def test_a_test_of_which_nothing_is_left_is_left_out_itself():
    found = read(("c.yaml", config({"type": "javascript", "value": "x"})))

    assert not found.tasks
    assert reasons(found)["one"] == "none of its assertions has an equivalent"


def test_weights_and_a_threshold_make_a_weighted_mean():
    task = case(
        {"type": "contains", "value": "a", "weight": 3},
        {"type": "contains", "value": "b"},
        more="    threshold: 0.7\n",
    )

    assert judged(task, "a") == "passed"
    assert judged(task, "b") == "failed"


def test_an_assert_set_is_a_part():
    inner = [{"type": "contains", "value": "a"}, {"type": "contains", "value": "b"}]

    task = case({"type": "assert-set", "threshold": 0.5, "assert": inner}, {"type": "contains", "value": "c"})

    assert judged(task, "a c") == "passed"
    assert judged(task, "a b") == "failed"


def test_prompts_times_tests_with_lists_of_variables_and_defaults():
    text = """
prompts:
  - 'Translate to {{lang}}: {{text}}'
  - id: chat
    label: chat
    raw: >-
      [{"role": "system", "content": "You are {{lang}}"},
      {"role": "user", "content": "{{text}}"}]
defaultTest:
  vars: {text: hi}
  assert: [{type: not-contains, value: sorry}]
tests:
  - vars: {lang: [French, German]}
    metadata: {level: 2}
    assert: [{type: icontains-any, value: [bonjour, hallo]}]
scenarios:
  - config: [{vars: {lang: Dutch}}]
    tests: [{vars: {text: bye}, assert: [{type: contains, value: dag}]}]
"""

    found = read(("c.yaml", text))

    assert len(found.tasks) == 6
    first, second = found.tasks[:2]
    assert first.messages[0].content == "Translate to French: hi"
    assert [message.role for message in second.messages] == ["system", "user"]
    assert first.source == second.source != found.tasks[2].source
    assert (first.tags, second.tags) == ({"level": 2, "prompt": "prompt 1"}, {"level": 2, "prompt": "chat"})
    assert judged(first, "Bonjour") == "passed"
    assert judged(first, "Bonjour, sorry") == "failed"
    assert found.tasks[4].messages[0].content == "Translate to Dutch: bye"


def test_files_are_not_followed_and_each_is_named():
    text = """
prompts: ['{{x}}', file://p.txt, prompts/other.json]
tests:
  - {vars: {x: 1}, assert: [{type: contains, value: a}]}
  - file://more.yaml
  - {description: far, vars: {x: file://x.txt}, assert: [{type: contains, value: a}]}
"""

    found = read(("c.yaml", text))

    assert len(found.tasks) == 1
    assert all("files are not followed" in each.reason for each in found.left_out)
    assert {each.name for each in found.left_out} == {"prompt 2", "prompt 3", "test 2", "far"}


def laughs():
    rows = [f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 9)}]" for at in range(9)]
    return "\n".join(["a: &a [x, x, x, x, x, x, x, x, x]", *rows, "prompts: [*j]"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (laughs(), "it holds more than"),
        ("prompts: !!python/object/apply:os.system [id]\ntests: []", "line 1: a tag that makes an object"),
        ("prompts: &a [*a]\ntests: []", "stands inside what it names"),
        ("prompts: " + "[" * 100 + "]" * 100, "nested deeper than 64"),
        ("prompts: [a]\nprompts: [b]\ntests: []", "line 2: the key “prompts” stands twice"),
        ("prompts: [a\ntests: [", "line"),
        ("prompts: [a]\ntests: [{vars: {x: .nan}}]", "out of range"),
    ],
)
def test_yaml_is_plain_data_within_bounds(text, reason):
    with pytest.raises(Unreadable) as caught:
        read(("c.yaml", text))

    assert reason in str(caught.value)


def test_dates_and_truth_stay_what_was_written():
    task = case({"type": "contains", "value": "x"}, variables="{x: 2024-01-31}")

    assert task.messages[0].content == "Say 2024-01-31"
