"""Gates of suites: numbered rules, and what they decided on runs."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("core", "0001_people_projects_work"), ("evals", "0004_probes")]
    operations: ClassVar = [
        migrations.CreateModel(
            name="GateRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("rules", models.JSONField(default=list)),
                ("digest", models.CharField(max_length=64)),
                ("blocks_release", models.BooleanField(default=True)),
                ("reason", models.TextField()),
                ("created_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "suite",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gate_revisions",
                        to="evals.suite",
                    ),
                ),
            ],
            options={"ordering": ["-number"]},
        ),
        migrations.CreateModel(
            name="GateDecision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("in_service_baseline", models.BooleanField(default=True)),
                (
                    "decision",
                    models.CharField(
                        choices=[("passed", "Passed"), ("failed", "Failed"), ("undecided", "Undecided")],
                        max_length=10,
                    ),
                ),
                ("sentence", models.TextField()),
                ("results", models.JSONField()),
                ("suite_digest", models.CharField(max_length=64)),
                ("rules_digest", models.CharField(max_length=64)),
                ("run_digest", models.CharField(max_length=64)),
                ("baseline_digest", models.CharField(blank=True, max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("created_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "baseline",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evals.run",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gate_decisions",
                        to="core.project",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gate_decisions",
                        to="evals.run",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="evals.gaterevision",
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.AddConstraint(
            model_name="gaterevision",
            constraint=models.UniqueConstraint(fields=("suite", "number"), name="gate_revision_number_once"),
        ),
        migrations.AddConstraint(
            model_name="gatedecision",
            constraint=models.UniqueConstraint(fields=("run", "digest"), name="gate_decision_once"),
        ),
        migrations.AddConstraint(
            model_name="gatedecision",
            constraint=models.CheckConstraint(
                condition=models.Q(("decision__in", ["passed", "failed", "undecided"])),
                name="gate_decision_known",
            ),
        ),
    ]
