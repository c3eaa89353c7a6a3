"""Runs: limits, figures kept beside the results, pausing."""

import logging
from typing import Any, ClassVar

import django.db.models.deletion
from django.db import DatabaseError, migrations, models, transaction
from django.db.models import OuterRef, Subquery

logger = logging.getLogger(__name__)


def fill_new_fields(apps: Any, schema_editor: Any) -> None:
    """Give results their family, and runs their clock and what they still wait for.

    What the results of older runs add up to is worked out afterwards, by a periodic task.
    """
    case, result = apps.get_model("evals", "Case"), apps.get_model("evals", "Result")
    result.objects.update(family=Subquery(case.objects.filter(pk=OuterRef("case_id")).values("family")[:1]))
    for run in apps.get_model("evals", "Run").objects.exclude(started_at=None).iterator():
        if run.state == "running":
            run.running_since = run.started_at
            run.waiting = _waiting(apps, run)
        elif run.finished_at is not None:
            run.ran_s = max(0.0, (run.finished_at - run.started_at).total_seconds())
        run.save(update_fields=["running_since", "waiting", "ran_s"])


def make_search_indexes(apps: Any, schema_editor: Any) -> None:
    """Let PostgreSQL find cases by a part of their id, or by a tag, in suites of any length.

    Both only make a search faster, so a database that does not let us have them is no reason to stop.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute("CREATE INDEX case_by_tag ON evals_case USING gin (tags jsonb_path_ops)")
    try:
        with transaction.atomic(using=schema_editor.connection.alias):
            schema_editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            schema_editor.execute(
                'CREATE INDEX case_by_key_part ON evals_case USING gin (UPPER("key"::text) gin_trgm_ops)'
            )
    except DatabaseError as error:
        logger.warning("searching in very long suites will be slow, without pg_trgm: %s", error)


def drop_search_indexes(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS case_by_tag, case_by_key_part")


def _waiting(apps: Any, run: Any) -> int:
    units = apps.get_model("core", "WorkUnit").objects.filter(
        owner=f"evals.run:{run.pk}", state__in=["pending", "sent", "running"]
    )
    return sum(len(unit.payload["indexes"]) for unit in units.iterator()) * int(run.sampling["samples"])


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("core", "0001_people_projects_work"),
        ("evals", "0002_suites"),
        ("versions", "0002_endpoints"),
    ]
    operations: ClassVar = [
        migrations.CreateModel(
            name="RunCluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(max_length=200)),
                ("parts", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="RunSlice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(blank=True, max_length=120)),
                ("value", models.CharField(blank=True, max_length=200)),
                ("passed", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("error", models.PositiveBigIntegerField(default=0)),
                ("unscored", models.PositiveBigIntegerField(default=0)),
                ("cancelled", models.PositiveBigIntegerField(default=0)),
                ("answered", models.PositiveBigIntegerField(default=0)),
                ("flagged", models.PositiveBigIntegerField(default=0)),
                ("cached", models.PositiveBigIntegerField(default=0)),
                ("attempts", models.PositiveBigIntegerField(default=0)),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("completion_tokens", models.PositiveBigIntegerField(default=0)),
                ("paid_prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("paid_completion_tokens", models.PositiveBigIntegerField(default=0)),
                ("score_e6", models.PositiveBigIntegerField(default=0)),
                ("clusters", models.PositiveBigIntegerField(default=0)),
                ("rows_rows", models.PositiveBigIntegerField(default=0)),
                ("rows_passed", models.PositiveBigIntegerField(default=0)),
                ("passed_passed", models.PositiveBigIntegerField(default=0)),
                ("sketches", models.JSONField(default=dict)),
                ("cases", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["dimension", "value"],
            },
        ),
        migrations.RemoveIndex(
            model_name="result",
            name="result_counts",
        ),
        migrations.AddField(
            model_name="result",
            name="attempts",
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="result",
            name="cached",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="result",
            name="earlier_completion_tokens",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="result",
            name="earlier_prompt_tokens",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="result",
            name="family",
            field=models.CharField(blank=True, max_length=100),
        ),
        migrations.AddField(
            model_name="result",
            name="flags",
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name="result",
            name="per_token_ms",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="result",
            name="turns_digest",
            field=models.CharField(blank=True, max_length=64, default=""),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="result",
            name="turns_line",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="cache",
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="concurrency",
            field=models.PositiveIntegerField(default=16),
        ),
        migrations.AddField(
            model_name="run",
            name="dimensions",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="done_before",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="input_usd_per_mtok",
            field=models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="output_usd_per_mtok",
            field=models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="ran_s",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="run",
            name="running_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="waiting",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="result",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="results",
                to="evals.run",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="state",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("running", "Running"),
                    ("paused", "Paused"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="result",
            index=models.Index(fields=["run", "id"], name="result_list"),
        ),
        migrations.AddIndex(
            model_name="result",
            index=models.Index(fields=["run", "state", "id"], name="result_by_state"),
        ),
        migrations.AddIndex(
            model_name="result",
            index=models.Index(fields=["run", "family", "id"], name="result_by_family"),
        ),
        migrations.AddIndex(
            model_name="result",
            index=models.Index(
                condition=models.Q(("captured_at", None), ("state", "failed")),
                fields=["run"],
                name="result_uncaptured",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("running_since__isnull", True), ("state", "running"), _connector="OR"),
                name="run_clock_stands",
            ),
        ),
        migrations.AddField(
            model_name="runcluster",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="clusters",
                to="evals.run",
            ),
        ),
        migrations.AddField(
            model_name="runslice",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="slices",
                to="evals.run",
            ),
        ),
        migrations.AddConstraint(
            model_name="runcluster",
            constraint=models.UniqueConstraint(fields=("run", "source"), name="cluster_once"),
        ),
        migrations.AddConstraint(
            model_name="runslice",
            constraint=models.UniqueConstraint(fields=("run", "dimension", "value"), name="slice_once"),
        ),
        migrations.RunPython(fill_new_fields, migrations.RunPython.noop),
        migrations.RunPython(make_search_indexes, drop_search_indexes),
    ]
