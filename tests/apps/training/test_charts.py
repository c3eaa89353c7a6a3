"""Curves and figures: words that say what is shown, nothing for what was not measured."""

from apps.training.charts import run_charts
from apps.training.figures import figures_of


def test_the_label_says_how_the_curve_went() -> None:
    chart, *_ = run_charts({"pass_rate": [(0, 0.31), (1, 0.4), (2, 0.58)]}, steps=80)

    assert chart.label == "pass rate from 31 % to 58 % over 3 steps"
    assert chart.figure["data"][0]["x"] == [1, 2, 3]


def test_a_run_without_points_has_no_chart() -> None:
    assert run_charts({}, steps=80) == []


def test_a_young_run_is_not_squeezed_into_a_corner() -> None:
    chart, *_ = run_charts({"pass_rate": [(0, 0.3), (1, 0.4)]}, steps=80)
    full, *_ = run_charts({"pass_rate": [(step, 0.3) for step in range(80)]}, steps=80)

    assert chart.figure["layout"]["xaxis"]["range"] == [0.5, 10.5]
    assert full.figure["layout"]["xaxis"]["range"] == [0.5, 80.5]


def test_figures_are_the_newest_ones_that_were_measured() -> None:
    figures = figures_of({"pass_rate": [(0, 0.2), (1, 0.75)], "seconds": [(0, 250.0)]})

    assert [(figure.name, figure.value) for figure in figures] == [
        ("Pass rate", "75 %"),
        ("Training took", "4 min 10 s"),
    ]
