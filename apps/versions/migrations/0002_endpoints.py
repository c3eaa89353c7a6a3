"""Endpoints: limits and prices."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("versions", "0001_versions_releases_evidence")]
    operations: ClassVar = [
        migrations.AddField("deployment", "max_concurrency", models.PositiveIntegerField(default=16)),
        migrations.AddField(
            "deployment", "requests_per_minute", models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.AddField(
            "deployment", "tokens_per_minute", models.PositiveIntegerField(blank=True, null=True)
        ),
        migrations.AddField("deployment", "timeout_s", models.PositiveIntegerField(default=60)),
        migrations.AddField("deployment", "deadline_s", models.PositiveIntegerField(default=600)),
        migrations.AddField("deployment", "max_attempts", models.PositiveIntegerField(default=5)),
        migrations.AddField(
            "deployment",
            "input_usd_per_mtok",
            models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddField(
            "deployment",
            "output_usd_per_mtok",
            models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddConstraint(
            "deployment",
            models.CheckConstraint(
                condition=models.Q(
                    max_concurrency__gte=1,
                    max_attempts__gte=1,
                    timeout_s__gte=1,
                    deadline_s__gte=models.F("timeout_s"),
                )
                & (models.Q(requests_per_minute=None) | models.Q(requests_per_minute__gte=1))
                & (models.Q(tokens_per_minute=None) | models.Q(tokens_per_minute__gte=1)),
                name="deployment_limits_let_something_through",
            ),
        ),
        migrations.AddConstraint(
            "deployment",
            models.CheckConstraint(
                condition=(models.Q(input_usd_per_mtok=None) | models.Q(input_usd_per_mtok__gte=0))
                & (models.Q(output_usd_per_mtok=None) | models.Q(output_usd_per_mtok__gte=0)),
                name="deployment_prices_not_negative",
            ),
        ),
    ]
