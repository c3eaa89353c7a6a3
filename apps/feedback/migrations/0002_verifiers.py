"""Verifiers: versions and agreement with people."""

import hashlib
import json
from typing import Any, ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def _digests(apps: Any, schema_editor: Any) -> None:
    """Versions made before there were digests; as ``apps.feedback.verifiers.digest_of``."""
    rows = apps.get_model("feedback", "Verifier").objects.filter(digest="")
    for row in rows.iterator(chunk_size=200):
        text = json.dumps([row.kind, row.params], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        row.digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        row.save(update_fields=["digest"])


def _nothing(apps: Any, schema_editor: Any) -> None:
    """The column goes with its digests."""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("feedback", "0001_captures_cases_assets"),
    ]
    operations: ClassVar = [
        migrations.AddField(
            model_name="verifier",
            name="digest",
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name="verifier",
            name="note",
            field=models.CharField(blank=True, max_length=300),
        ),
        migrations.RunPython(_digests, _nothing),
        migrations.CreateModel(
            name="VerifierTrial",
            fields=[
                ("id", _ID),
                ("kind", models.CharField(max_length=40)),
                ("items_digest", models.CharField(max_length=64)),
                ("size", models.PositiveIntegerField()),
                ("results", models.JSONField(default=list)),
                ("error", models.TextField(blank=True)),
                ("started_by", models.CharField(max_length=150)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="verifier_trials",
                        to="core.project",
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.CreateModel(
            name="VerifierAgreement",
            fields=[
                ("id", _ID),
                ("number", models.PositiveIntegerField()),
                ("size", models.PositiveIntegerField()),
                ("left_out", models.JSONField(default=dict)),
                ("unscored", models.PositiveIntegerField(default=0)),
                ("errors", models.PositiveIntegerField(default=0)),
                ("n", models.PositiveIntegerField(default=0)),
                ("clusters", models.PositiveIntegerField(default=0)),
                ("caught", models.PositiveIntegerField(default=0)),
                ("missed", models.PositiveIntegerField(default=0)),
                ("accused", models.PositiveIntegerField(default=0)),
                ("cleared", models.PositiveIntegerField(default=0)),
                ("agreement", models.JSONField(null=True)),
                ("kappa", models.JSONField(null=True)),
                ("f1", models.JSONField(null=True)),
                ("too_small", models.CharField(blank=True, max_length=200)),
                ("error", models.TextField(blank=True)),
                ("started_by", models.CharField(max_length=150)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "verifier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agreements",
                        to="feedback.verifier",
                    ),
                ),
            ],
            options={"ordering": ["-number"]},
        ),
        migrations.CreateModel(
            name="AgreementRow",
            fields=[
                ("id", _ID),
                (
                    "text",
                    models.CharField(
                        choices=[("answer", "The answer"), ("correction", "The correction")], max_length=10
                    ),
                ),
                ("passes", models.BooleanField()),
                ("state", models.CharField(blank=True, max_length=10)),
                ("reasons", models.JSONField(default=list)),
                (
                    "agreement",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="feedback.verifieragreement",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="feedback.failurecase",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddConstraint(
            model_name="verifieragreement",
            constraint=models.UniqueConstraint(fields=["verifier", "number"], name="agreement_number_once"),
        ),
        migrations.AddConstraint(
            model_name="verifieragreement",
            constraint=models.UniqueConstraint(
                condition=Q(finished_at=None), fields=["verifier"], name="agreement_one_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="agreementrow",
            constraint=models.UniqueConstraint(
                fields=["agreement", "case", "text"], name="agreement_row_once"
            ),
        ),
    ]
