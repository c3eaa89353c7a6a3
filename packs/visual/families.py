"""The families of the visual pack."""

from pathlib import Path

from packs.registry import PackFamily
from packs.seeded import SeededFamily, SeededPack
from packs.visual import charts, drawings, screens

_FAMILIES = (
    ("chart_value", "Bar read off a chart", "numeric", charts.bar_value,
     "Say what a bar of a chart stands for."),
    ("chart_peak", "Peak of a line", "exact", charts.line_peak,
     "Find the month in which one of three lines is highest."),
    ("chart_difference", "Two bars compared", "numeric", charts.bar_difference,
     "Work out by how much two bars of a month differ."),
    ("screen_field", "Field of a form", "exact", screens.field,
     "Read the content of one field of a form."),
    ("screen_switches", "Switches that are on", "exact", screens.switches,
     "Name the options that are switched on."),
    ("screen_table", "Rows of a table added up", "numeric", screens.table_sum,
     "Add up the amounts of the rows in one state."),
    ("screen_point", "Place of a button", "json_fields", screens.point,
     "Say where on the screen a button is."),
    ("drawing_count", "Shapes counted", "numeric", drawings.count,
     "Count the shapes of one colour and kind."),
    ("drawing_neighbour", "Neighbour of a shape", "exact", drawings.neighbour,
     "Name what lies directly beside a shape."),
    ("drawing_measure", "Measure worked out", "numeric", drawings.measure,
     "Work out a distance on a plate from its dimensions."),
)  # fmt: skip

PACK = SeededPack(
    "visual",
    [
        SeededFamily(
            PackFamily(name=name, title=title, description=description, verifier_kinds=(kind,)),
            draw=draw,
            max_tokens=64,
        )
        for name, title, kind, draw, description in _FAMILIES
    ],
).pack(
    title="Pictures",
    description="Charts, screens and drawings that are asked about, for models that take images.",
    folder=str(Path(__file__).parent),
)
