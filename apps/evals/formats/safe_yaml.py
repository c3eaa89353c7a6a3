"""YAML from strangers: plain data only, bounded in size, depth and aliases; mappings know their line."""

from typing import Any

import yaml

from apps.evals.formats.base import Unreadable, Upload
from apps.evals.formats.values import decoded, value_problem

MAX_YAML = 4 * 1024 * 1024
_MOST_NODES = 400_000
_MOST_TEXT = 16 * MAX_YAML
_DEEPEST = 64


class Lined(dict[str, Any]):
    """A mapping that knows the line on which it stands."""

    line = 0


# The same rules, some ten times as fast where libyaml is there.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Plain data without time stamps: what was written as a date stays text."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Any:
    found = Lined()
    found.line = node.start_mark.line + 1
    yield found
    own: set[str] = set()
    for key_node, _ in node.value:
        if isinstance(key_node, yaml.ScalarNode) and key_node.tag != "tag:yaml.org,2002:merge":
            if key_node.value in own:
                said = f"the key “{key_node.value[:60]}” stands twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, said, key_node.start_mark)
            own.add(key_node.value)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
        if not isinstance(key, str | int | float | bool):
            raise yaml.constructor.ConstructorError(None, None, "a key must be text", key_node.start_mark)
        name = key if isinstance(key, str) else str(key)
        found[name] = loader.construct_object(value_node, deep=True)  # type: ignore[no-untyped-call]


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)  # type: ignore[no-untyped-call]
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(upload: Upload) -> Any:
    """The document of a YAML file. Raises ``Unreadable`` naming the line."""
    if len(upload.data) > MAX_YAML:
        raise Unreadable(upload.name, f"a YAML file is larger than {MAX_YAML // 2**20} MB")
    text = decoded(upload, [])
    try:
        _bounded(upload.name, text)
        document = yaml.load(text, Loader=_Loader)
    except Unreadable:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or "not YAML"
        if "could not determine a constructor" in reason:
            reason = "a tag that makes an object; only plain data is read"
        raise Unreadable(upload.name, reason, mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        raise Unreadable(upload.name, f"not YAML: {str(error)[:120]}") from None
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(upload.name, reason[:200]) from None
    if problem := value_problem(document):
        raise Unreadable(upload.name, problem)
    return document


def _bounded(filename: str, text: str) -> None:
    """Refuse what would grow: each alias counts as all that it stands for, its text included."""
    sizes: dict[str, tuple[int, int]] = {}
    open_nodes: list[tuple[str | None, int, int]] = []
    total = letters = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise Unreadable(filename, f"the alias *{event.anchor} stands inside what it names", line)
            values, characters = sizes[event.anchor]
            total, letters = total + values, letters + characters
        elif isinstance(event, yaml.ScalarEvent):
            total, letters = total + 1, letters + len(event.value)
            if event.anchor:
                sizes[event.anchor] = 1, len(event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            total += 1
            open_nodes.append((event.anchor, total - 1, letters))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before, letters_before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before, letters - letters_before
        if total > _MOST_NODES:
            raise Unreadable(filename, f"written out, it holds more than {_MOST_NODES:,} values", line)
        if letters > _MOST_TEXT:
            raise Unreadable(filename, f"written out, it is larger than {_MOST_TEXT // 2**20} MB", line)
        if len(open_nodes) > _DEEPEST:
            raise Unreadable(filename, f"it is nested deeper than {_DEEPEST} levels", line)
