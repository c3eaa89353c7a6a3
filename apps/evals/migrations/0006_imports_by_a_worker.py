"""Imports that a worker stores: their state, who confirmed them, and those that nobody wants to see first."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("evals", "0005_gates")]
    operations: ClassVar = [
        migrations.AddField(
            model_name="suiteimport", name="at_once", field=models.BooleanField(default=False)
        ),
        migrations.AddField(
            model_name="suiteimport",
            name="confirmed_by",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.AlterField(
            model_name="suiteimport",
            name="state",
            field=models.CharField(
                choices=[
                    ("reading", "Reading"),
                    ("ready", "Ready"),
                    ("importing", "Importing"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                ],
                default="reading",
                max_length=10,
            ),
        ),
    ]
