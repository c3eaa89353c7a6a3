"""Judges: calibration against people."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("core", "0001_people_projects_work"), ("feedback", "0002_verifiers")]
    operations: ClassVar = [
        migrations.CreateModel(
            name="GoldAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("question", models.TextField()),
                ("answer", models.TextField()),
                ("baseline", models.TextField(blank=True)),
                ("passes", models.BooleanField()),
                ("source", models.CharField(max_length=120)),
                ("added_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gold_answers",
                        to="core.project",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Judge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("number", models.PositiveIntegerField(default=1)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("judge", "Score"),
                            ("label", "Labels"),
                            ("pairwise", "Comparison"),
                        ],
                        max_length=10,
                    ),
                ),
                ("params", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("setup", models.CharField(max_length=64)),
                ("note", models.CharField(blank=True, max_length=200)),
                ("created_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="judges", to="core.project"
                    ),
                ),
            ],
            options={
                "ordering": ["name", "-number"],
            },
        ),
        migrations.CreateModel(
            name="Calibration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("size", models.PositiveIntegerField()),
                ("taken", models.JSONField(default=dict)),
                ("items_digest", models.CharField(max_length=64)),
                ("results_digest", models.CharField(blank=True, max_length=64)),
                ("figures", models.JSONField(null=True)),
                ("doubts", models.JSONField(default=list)),
                ("kappa", models.FloatField(null=True)),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("completion_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_usd", models.FloatField(null=True)),
                ("error", models.TextField(blank=True)),
                ("started_by", models.CharField(max_length=150)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibrations",
                        to="feedback.judge",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="JudgedAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=160)),
                (
                    "origin",
                    models.CharField(
                        choices=[("label", "Label"), ("correction", "Correction"), ("gold", "Gold answer")],
                        max_length=10,
                    ),
                ),
                ("human", models.BooleanField()),
                ("judged", models.BooleanField(null=True)),
                ("silence", models.CharField(blank=True, max_length=12)),
                ("score", models.FloatField(null=True)),
                ("reasons", models.JSONField(default=list)),
                ("votes", models.JSONField(default=list)),
                (
                    "calibration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="feedback.calibration",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="judged_answers",
                        to="feedback.failurecase",
                    ),
                ),
                (
                    "gold",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="judged_answers",
                        to="feedback.goldanswer",
                    ),
                ),
            ],
            options={
                "ordering": ["index"],
            },
        ),
        migrations.AddConstraint(
            model_name="goldanswer",
            constraint=models.UniqueConstraint(fields=("project", "digest"), name="gold_answer_once"),
        ),
        migrations.AddIndex(
            model_name="judge",
            index=models.Index(fields=["project", "digest"], name="judge_digest"),
        ),
        migrations.AddConstraint(
            model_name="judge",
            constraint=models.UniqueConstraint(
                fields=("project", "name", "number"), name="judge_number_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="calibration",
            constraint=models.UniqueConstraint(fields=("judge", "number"), name="calibration_number_once"),
        ),
        migrations.AddConstraint(
            model_name="calibration",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "running")), fields=("judge",), name="calibration_one_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="calibration",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "done"), _negated=True), ("figures__isnull", False), _connector="OR"
                ),
                name="calibration_done_has_figures",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgedanswer",
            constraint=models.UniqueConstraint(fields=("calibration", "index"), name="judged_answer_once"),
        ),
        migrations.AddConstraint(
            model_name="judgedanswer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("judged__isnull", True), models.Q(("silence", ""), _negated=True)),
                    models.Q(("judged__isnull", False), ("silence", "")),
                    _connector="OR",
                ),
                name="judged_answer_decided_or_silent",
            ),
        ),
    ]
