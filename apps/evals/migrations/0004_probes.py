"""Probes: four signals, rounds with their cost, probes that follow what is in service.

References and rounds of the two old signals are carried over in the new shape, so that probes go on.
"""

from typing import Any, ClassVar

from django.db import migrations, models


def reshape(apps: Any, schema_editor: Any) -> None:
    for probe in apps.get_model("evals", "Probe").objects.exclude(reference=None).iterator():
        probe.reference = new_reference(probe.reference, probe.prompts)
        probe.save(update_fields=["reference"])
    for row in apps.get_model("evals", "ProbeRound").objects.iterator():
        row.signals = new_signals(row.signals, row.verdict)
        row.save(update_fields=["signals"])


def new_reference(old: dict[str, Any], prompts: list[str]) -> dict[str, Any]:
    repeats = 2 * len(old["answers"])
    return {
        "format": 2,
        "prompts": prompts,
        "dialect": {},
        "identity": {
            # How often each was seen is not known; each counts as seen before, as it did so far.
            "models": dict.fromkeys(old["models"], 2),
            "fingerprints": dict.fromkeys(old["fingerprints"], 2),
            "prompt_tokens": old["prompt_tokens"],
        },
        "answers": {
            "texts": old["answers"],
            "matched": max(0, min(repeats, round(old["match_rate"] * (repeats + 2)) - 1)),
            "repeats": repeats,
        },
        "logprobs": None,
        "notes": ["It was taken before first tokens were watched. Take a new reference to add them."],
    }


def new_signals(old: dict[str, Any], verdict: str) -> dict[str, Any]:
    if "answered" not in old or verdict == "reference":
        return {}
    state = verdict if verdict in ("unchanged", "flagged") else "unmeasured"
    return {
        "answers": {
            "state": state,
            "value": old.get("matched"),
            "threshold": None,
            "n": old["answered"],
            "reasons": [],
            "detail": {"p": old.get("p")},
        }
    }


class Migration(migrations.Migration):
    dependencies: ClassVar = [("evals", "0003_runs")]
    operations: ClassVar = [
        migrations.RemoveConstraint(model_name="probe", name="probe_once_per_model"),
        migrations.AddField(
            model_name="probe", name="busy_until", field=models.DateTimeField(blank=True, null=True)
        ),
        migrations.AddField(model_name="probe", name="follows", field=models.BooleanField(default=False)),
        migrations.AddField(
            model_name="proberound", name="completion_tokens", field=models.PositiveIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="proberound",
            name="cost_usd",
            field=models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name="proberound", name="prompt_tokens", field=models.PositiveIntegerField(default=0)
        ),
        migrations.AddField(
            model_name="proberound", name="requests", field=models.PositiveIntegerField(default=0)
        ),
        migrations.AlterField(
            model_name="proberound",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("reference", "Reference taken"),
                    ("unchanged", "Unchanged"),
                    ("flagged", "Flagged"),
                    ("partial", "Partly measured"),
                    ("unmeasured", "Could not measure"),
                ],
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.UniqueConstraint(
                condition=models.Q(("follows", False)),
                fields=("deployment", "model"),
                name="probe_once_per_model",
            ),
        ),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.UniqueConstraint(
                condition=models.Q(("follows", True)),
                fields=("project", "edition_kind"),
                name="probe_follows_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="probe",
            constraint=models.CheckConstraint(
                condition=models.Q(("follows", False), ("version__isnull", False), _connector="OR"),
                name="probe_follows_a_version",
            ),
        ),
        migrations.RunPython(reshape, migrations.RunPython.noop),
    ]
