"""OpenAI Evals: the hosted product's objects and the open-source registry."""

import json

import pytest

from apps.evals.formats import Unreadable
from tests.apps.evals.reading import judged, read, reasons

STRING = {
    "type": "string_check", "name": "Match", "input": "{{ sample.output_text }}",
    "reference": "{{ item.correct_label }}", "operation": "eq",
}  # fmt: skip
EVAL = {
    "object": "eval",
    "id": "eval_1",
    "name": "IT Ticket Categorization",
    "data_source_config": {"type": "custom", "schema": {"type": "object"}},
    "testing_criteria": [STRING],
}
RUN = {
    "object": "eval.run",
    "name": "gpt-4.1",
    "data_source": {
        "type": "responses",
        "input_messages": {
            "type": "template",
            "template": [
                {"role": "developer", "content": "Categorize the ticket."},
                {"role": "user", "content": "{{ item.ticket_text }}"},
            ],
        },
        "source": {"type": "file_id", "id": "file-1"},
        "sampling_params": {"max_completion_tokens": 40},
    },
}
ROWS = (
    '{"item": {"ticket_text": "My monitor won\'t turn on!", "correct_label": "Hardware"}}\n'
    '{"item": {"ticket_text": "I\'m in vim and I can\'t quit!", "correct_label": "Software"}}\n'
)


def hosted(*criteria, item=None, run=RUN, **options):
    definition = {**EVAL, "testing_criteria": list(criteria)}
    row = {"item": item or {"ticket_text": "My monitor is dark", "correct_label": "Hardware"}}
    return read(
        ("eval.json", json.dumps(definition, indent=1)),
        ("run.json", json.dumps(run, indent=1)),
        ("rows.jsonl", json.dumps(row)),
        **options,
    )


def test_eval_run_and_data_together_make_the_cases_that_were_run():
    found = read(("rows.jsonl", ROWS), ("run.json", json.dumps(RUN)), ("eval.json", json.dumps(EVAL)))

    first, second = found.tasks
    assert [(m.role, m.content) for m in first.messages] == [
        ("system", "Categorize the ticket."), ("user", "My monitor won't turn on!"),
    ]  # fmt: skip
    assert (first.family, first.max_tokens) == ("it_ticket_categorization", 40)
    assert judged(second, "Software") == "passed"
    assert judged(second, "software") == "failed"
    assert not found.left_out


def test_one_file_may_hold_all_of_it_and_a_run_its_rows():
    rows = [json.loads(row) for row in ROWS.splitlines()]
    inline = {
        **RUN,
        "data_source": {**RUN["data_source"], "source": {"type": "file_content", "content": rows}},
    }

    one = read(("all.json", json.dumps({"eval": EVAL, "runs": [RUN], "rows": rows})))
    other = read(("all.json", json.dumps({"eval": EVAL, "runs": [inline]})))

    assert len(one.tasks) == 2
    assert [task.messages for task in one.tasks] == [task.messages for task in other.tasks]


def test_output_items_give_the_rows_and_what_the_model_was_asked():
    items = {
        "object": "list",
        "data": [
            {
                "object": "eval.run.output_item",
                "datasource_item": {"ticket_text": "dark", "correct_label": "Hardware"},
                "sample": {"input": [{"role": "user", "content": "Sort: dark"}], "output": []},
            }
        ],
    }

    (task,) = read(("eval.json", json.dumps(EVAL)), ("items.json", json.dumps(items))).tasks

    assert task.messages[0].content == "Sort: dark"
    assert judged(task, "Hardware") == "passed"


@pytest.mark.parametrize(
    ("operation", "right", "wrong"),
    [
        ("eq", "Hardware", "hardware"),
        ("ne", "Software", "Hardware"),
        ("like", "It is Hardware.", "it is hardware"),
        ("ilike", "it is hardware", "software"),
    ],
)
def test_string_checks_mean_what_they_meant(operation, right, wrong):
    (task,) = hosted({**STRING, "operation": operation}).tasks

    assert judged(task, right) == "passed"
    assert judged(task, wrong) == "failed"


@pytest.mark.parametrize("metric", ["fuzzy_match", "bleu", "gleu", "meteor", "rouge_1", "rouge_2", "rouge_l"])
def test_text_similarities_have_an_equivalent(metric):
    grader = {
        "type": "text_similarity", "name": "close", "input": "{{sample.output_text}}",
        "reference": "{{item.text}}", "evaluation_metric": metric, "pass_threshold": 0.8,
    }  # fmt: skip
    said = "the quick brown fox jumps over the lazy dog today"

    (task,) = hosted(grader, item={"text": said, "ticket_text": "q"}).tasks

    assert judged(task, said) == "passed"
    assert judged(task, "nothing alike") == "failed"


def test_an_embedding_similarity_is_left_out_with_the_reason_and_the_rest_stays():
    grader = {
        "type": "text_similarity", "name": "near", "input": "{{sample.output_text}}",
        "reference": "{{item.correct_label}}", "evaluation_metric": "cosine", "pass_threshold": 0.8,
    }  # fmt: skip

    found = hosted(STRING, grader)

    assert len(found.tasks) == 1
    assert "cosine compares embeddings" in reasons(found)["near"]
    assert reasons(found)["near"].endswith("(in every row)")


def test_model_graders_become_judges():
    score = {
        "type": "score_model", "name": "s", "model": "o3", "range": [1, 7], "pass_threshold": 5.5,
        "input": [{"role": "user", "content": {"type": "input_text", "text": "Rate {{sample.output_text}}"}}],
    }  # fmt: skip
    label = {
        "type": "label_model", "name": "l", "model": "o3-mini", "labels": ["good", "bad"],
        "passing_labels": ["good"], "input": [{"role": "developer", "content": "Sort {{item.ticket_text}}."}],
    }  # fmt: skip

    found = hosted(score, label)

    judge, labels = found.tasks[0].verifier.params["parts"]
    assert judge["kind"] == "judge"
    assert judge["params"]["threshold"] == pytest.approx(0.75)
    assert judge["params"]["criteria"] == ["Rate (the answer that is judged)"]
    assert labels["params"]["labels"] == ["good", "bad"]
    assert labels["params"]["criteria"] == ["Sort My monitor is dark."]
    assert "Model graders ask the judges of this project, not the model that the eval named." in found.notes


def test_python_and_multi_graders_are_taken():
    source = (
        "def grade(sample, item):\n    return 1.0 if item['correct_label'] in sample['output_text'] else 0.0"
    )
    python = {"type": "python", "name": "py", "source": source, "pass_threshold": 0.5}
    multi = {
        "type": "multi", "name": "both", "graders": {"a": STRING, "b": python},
        "calculate_output": "0.25 * a + 0.75 * b", "pass_threshold": 0.5,
    }  # fmt: skip

    (one,) = hosted(python).tasks
    (two,) = hosted(multi).tasks

    assert one.verifier.kind == "grader_python"
    assert one.verifier.params["item"]["correct_label"] == "Hardware"
    assert two.verifier.params["threshold"] == 0.5
    assert [part["weight"] for part in two.verifier.params["parts"]] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        ({"type": "endpoint", "name": "x"}, "graders of type “endpoint” have no equivalent"),
        ({**STRING, "name": "x", "input": "{{sample.output_json.label}}"}, "not the text of the answer"),
        ({**STRING, "name": "x", "input": "It is {{sample.output_text}}"}, "puts words around the answer"),
        ({**STRING, "name": "x", "reference": "{{item.gone}}"}, "{{item.gone}}, which is not there"),
        ({**STRING, "name": "x", "reference": "{{ item.a | upper }}"}, "computes something"),
        ({**STRING, "name": "x", "reference": "{% if x %}"}, "loops or conditions"),
        (
            {"type": "multi", "name": "x", "graders": {"a": STRING}, "calculate_output": "a ** 2"},
            "no weighted sum",
        ),
    ],
)
def test_what_has_no_equivalent_is_left_out_by_name(criterion, reason):
    found = hosted(STRING, criterion)

    assert len(found.tasks) == 1
    assert reason in reasons(found)["x"]


def test_without_a_run_the_prompt_can_be_written():
    files = ("eval.json", json.dumps(EVAL)), ("rows.jsonl", ROWS)

    found = read(*files)
    written = read(*files, prompt="Sort this: {{item.ticket_text}}")

    assert not found.tasks
    assert "send the run too, or write the prompt" in reasons(found)["row"]
    assert written.tasks[0].messages[0].content == "Sort this: My monitor won't turn on!"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([("rows.jsonl", ROWS)], "no eval is among the files"),
        ([("eval.json", json.dumps(EVAL))], "no rows are among the files"),
        ([("a.json", json.dumps(EVAL)), ("b.json", json.dumps(EVAL))], "2 evals are among the files"),
    ],
)
def test_what_is_missing_is_said(files, reason):
    with pytest.raises(Unreadable, match=reason):
        read(*files)


def registry(kind, sample, **arguments):
    args = "".join(f"\n    {name}: {value}" for name, value in arguments.items())
    text = (
        f"x.dev.v0:\n  class: evals.elsuite.basic.{kind}\n  args:\n    samples_jsonl: x/samples.jsonl{args}\n"
    )
    return read(("samples.jsonl", json.dumps(sample)), ("x.yaml", text))


CHAT = [{"role": "system", "content": "Sum."}, {"role": "user", "content": "2 + 2 ="}]


@pytest.mark.parametrize(
    ("kind", "ideal", "right", "wrong"),
    [
        ("match:Match", ["4", "four"], "4, of course", "It is 4"),
        ("includes:Includes", "four", "it is four.", "it is Four"),
        ("json_match:JsonMatch", '{"a": 1}', '{"a": 1.0}', '{"a": 1, "b": 2}'),
    ],
)
def test_registry_classes_mean_what_they_mean_there(kind, ideal, right, wrong):
    (task,) = registry(kind, {"input": CHAT, "ideal": ideal}).tasks

    assert judged(task, right) == "passed"
    assert judged(task, wrong) == "failed"


def test_fuzzy_match_runs_as_the_program_it_is_there():
    (task,) = registry("fuzzy_match:FuzzyMatch", {"input": CHAT, "ideal": "The Answer!"}).tasks

    namespace: dict = {}
    exec(task.verifier.params["source"], namespace)
    grade = namespace["grade"]
    item = task.verifier.params["item"]
    assert grade({"output_text": "answer"}, item) == 1.0
    assert grade({"output_text": "an answer it is"}, item) == 1.0
    assert grade({"output_text": "no"}, item) == 0.0
    assert grade({"output_text": ""}, item) == 0.0


def test_other_classes_are_left_out_and_samples_alone_are_matches():
    left = registry("modelgraded.classify:ModelBasedClassify", {"input": CHAT, "ideal": "4"})
    alone = read(("samples.jsonl", json.dumps({"input": CHAT, "ideal": "4"})))

    assert reasons(left) == {"ModelBasedClassify": "this class is a program of its own and has no equivalent"}
    assert judged(alone.tasks[0], "4.") == "passed"
    assert "it is judged as Match" in alone.notes[0]
    with pytest.raises(Unreadable, match="send the samples"):
        read(("x.yaml", "x:\n  class: evals.elsuite.basic.match:Match\n  args: {samples_jsonl: s.jsonl}\n"))
