"""Suites: splits of cases, imports on their way."""

from typing import Any, ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

# The words of that day; what they mean later is no business of a migration.
_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "eval"), "validation"),
    **dict.fromkeys(("held_out", "heldout", "holdout", "hold_out", "test"), "held_out"),
}


def fill_splits(apps: Any, schema_editor: Any) -> None:
    """Cases that carried a split as a tag belong to it from now on."""
    case = apps.get_model("evals", "Case")
    changed = []
    for row in case.objects.filter(tags__has_key="split").only("pk", "tags").iterator():
        word = row.tags.get("split")
        row.split = (
            _WORDS.get(word.strip().lower().replace("-", "_").replace(" ", "_"), "")
            if isinstance(word, str)
            else ""
        )
        if row.split:
            changed.append(row)
    case.objects.bulk_update(changed, ["split"], batch_size=500)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("core", "0001_people_projects_work"),
        ("evals", "0001_suites_runs_results"),
    ]
    operations: ClassVar = [
        migrations.AddField(
            model_name="case",
            name="split",
            field=models.CharField(
                blank=True,
                choices=[("train", "Train"), ("validation", "Validation"), ("held_out", "Held out")],
                default="",
                max_length=10,
            ),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=Q(("split__in", ["", "train", "validation", "held_out"])), name="case_split_known"
            ),
        ),
        migrations.CreateModel(
            name="SuiteImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("suite_name", models.CharField(max_length=100)),
                ("filename", models.CharField(max_length=300)),
                ("options", models.JSONField(default=dict)),
                ("keep_personal_data", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("reading", "Reading"),
                            ("ready", "Ready"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="reading",
                        max_length=10,
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("reading", models.PositiveIntegerField(default=1)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("upload", models.BinaryField(null=True)),
                ("prepared", models.BinaryField(null=True)),
                ("report", models.BinaryField(null=True)),
                ("digest", models.CharField(blank=True, max_length=64)),
                ("created_by", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("read_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "against",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="evals.suiteversion",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="suite_imports",
                        to="core.project",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="imports",
                        to="evals.suiteversion",
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.RunPython(fill_splits, migrations.RunPython.noop),
    ]
