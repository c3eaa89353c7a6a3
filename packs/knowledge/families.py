"""The knowledge pack."""

from pathlib import Path

from packs.knowledge import meetings, passages, planning, writing
from packs.registry import PackFamily
from packs.seeded import SeededFamily, SeededPack

_FAMILIES = (
    SeededFamily(
        PackFamily(
            "minutes_label",
            "Sentences of minutes",
            "Whether a sentence of minutes is a decision, an action or discussion. Simple.",
            ("exact",),
        ),
        meetings.minutes_label,
        max_tokens=16,
    ),
    SeededFamily(
        PackFamily(
            "minutes_summary",
            "Minutes into decisions and actions",
            "Decisions and actions with owner and date, without what was only discussed.",
            ("rules",),
            parts=("minutes_label",),
        ),
        meetings.minutes_summary,
        max_tokens=260,
    ),
    SeededFamily(
        PackFamily(
            "cited_answer",
            "Answers with citations",
            "An answer from dated passages, each statement with the passage that says so, or none.",
            ("rules", "exact"),
        ),
        passages.cited_answer,
        max_tokens=160,
    ),
    SeededFamily(
        PackFamily(
            "claim_check",
            "Claims against a text",
            "Which claims a text supports, contradicts or does not mention.",
            ("table",),
        ),
        passages.claim_check,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "mail_draft",
            "Mails",
            "A mail with every fact, without inside information and without promises.",
            ("rules",),
        ),
        writing.mail_draft,
        max_tokens=260,
    ),
    SeededFamily(
        PackFamily(
            "style_rewrite",
            "Rewriting to a style guide",
            "Plain words, short sentences, ISO dates; every fact kept, none added.",
            ("rules",),
        ),
        writing.style_rewrite,
        max_tokens=200,
    ),
    SeededFamily(
        PackFamily(
            "agenda",
            "Agendas from constraints",
            "The one order that fits, with start times and a break.",
            ("table",),
        ),
        planning.agenda,
        max_tokens=300,
    ),
    SeededFamily(
        PackFamily(
            "mail_intake",
            "Mail intake",
            "An incoming mail classified and read into one object.",
            ("json_fields",),
        ),
        planning.mail_intake,
        max_tokens=160,
    ),
)

SEEDED = SeededPack("knowledge", _FAMILIES)
PACK = SEEDED.pack(
    title="Knowledge work",
    description="Minutes, cited answers, mails, style, agendas: judged by rules, with judges where wanted.",
    folder=str(Path(__file__).parent),
)
