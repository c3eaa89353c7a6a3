"""The pack's families."""

from pathlib import Path

from packs.modelling import impossible, loops, parts, repair, scenes, views
from packs.registry import PackFamily
from packs.seeded import SeededFamily, SeededPack

GEOMETRY, SCENE = ("geometry",), ("scene",)

FAMILIES = (
    SeededFamily(
        PackFamily("part_block", "Block", "One box in one line, small enough for a pocket model.", GEOMETRY),
        parts.block,
        48,
    ),
    SeededFamily(
        PackFamily("part_bar", "Round bar", "One cylinder in one line, by radius or diameter.", GEOMETRY),
        parts.bar,
        48,
    ),
    SeededFamily(
        PackFamily("part_tube", "Tube", "A tube from radii, diameters or wall.", GEOMETRY), parts.tube, 96
    ),
    SeededFamily(
        PackFamily(
            "part_drilled",
            "Block with a hole",
            "A block with a through hole, in the middle or beside it.",
            GEOMETRY,
            parts=("part_block", "part_bar"),
        ),
        parts.drilled,
        128,
    ),
    SeededFamily(
        PackFamily(
            "part_plate",
            "Plate with holes",
            "A plate with a pattern of holes.",
            GEOMETRY,
            parts=("part_drilled",),
        ),
        parts.plate,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_bracket",
            "Bracket",
            "An L-shaped bracket with a hole in its base.",
            GEOMETRY,
            parts=("part_block", "part_drilled"),
        ),
        parts.bracket,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_flange",
            "Flange",
            "A disc with hub, bore and a circle of bolt holes.",
            GEOMETRY,
            parts=("part_tube", "part_plate"),
        ),
        parts.flange,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_shaft",
            "Stepped shaft",
            "Sections of a shaft, one on another.",
            GEOMETRY,
            parts=("part_bar",),
        ),
        parts.shaft,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_views",
            "Match the views",
            "A part from its front, right and top view.",
            GEOMETRY,
            parts=("part_block",),
        ),
        views.match_views,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_repair",
            "Fix the script",
            "A script with a mistake and what it should have made.",
            GEOMETRY,
            parts=("part_drilled", "part_plate", "part_bracket", "part_shaft"),
        ),
        repair.fix_script,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_flange_loop",
            "Flange, step by step",
            "A flange made in a loop of scripts and measurements.",
            GEOMETRY,
            environment="modelling",
            parts=("part_flange",),
        ),
        loops.build_flange,
        320,
    ),
    SeededFamily(
        PackFamily(
            "part_volume_loop",
            "Fit the volume",
            "A bore's radius found by measuring, so that the volume is right.",
            GEOMETRY,
            environment="modelling",
            parts=("part_drilled",),
        ),
        loops.fit_volume,
        192,
    ),
    SeededFamily(
        PackFamily(
            "part_impossible",
            "Impossible part",
            "A volume that does not fit into the size asked for: a canary, any pass is a cheat.",
            GEOMETRY,
            canary=True,
        ),
        impossible.impossible,
        96,
    ),
    SeededFamily(
        PackFamily("scene_stack", "Stack", "Boxes stacked so that nothing tips over.", SCENE),
        scenes.stack,
        256,
    ),
    SeededFamily(
        PackFamily("scene_bridge", "Bridge", "A beam across two pillars.", SCENE, parts=("scene_stack",)),
        scenes.bridge,
        256,
    ),
    SeededFamily(
        PackFamily("scene_floor", "Floor plan", "Boxes side by side on a small floor.", SCENE),
        scenes.floor,
        320,
    ),
)

PACK = SeededPack("modelling", FAMILIES).pack(
    title="3D modelling",
    description="Scripts that make parts and scenes; their meshes are measured, never believed.",
    folder=str(Path(__file__).parent),
)
