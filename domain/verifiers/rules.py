"""Prose judged by rules: facts that must be there, claims that must not, length, citations, numbers
that come from the source, structure. No model is asked.

A fact counts where the answer states it: a sentence that denies it does not, unless a mention is enough
(the order that is *not* refunded). Copying the source, citing everything and naming every alternative
are no way around: runs of copied words, foreign citations, what does not belong to a fact and forbidden
claims fail. What a reader does not see (comments, invisible characters) is not read.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown
from domain.verifiers.numbers import find_numbers
from domain.verifiers.patterns import MAX_TEXT, UnsafePattern, compiled, text_limit
from domain.verifiers.polarity import retracted
from domain.verifiers.prose import (
    copied_run,
    find_phrase,
    folded,
    hiding_markup,
    mixed_words,
    sections,
    sentences,
    words,
)
from domain.verifiers.rules_schema import RULES_SCHEMA
from domain.verifiers.statements import CITATION, citations_in, folded_ids, pieces, stated

_MAX_REASONS = 12
Rule = Mapping[str, Any]


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    rules: Rule = {**task.verifier.params, **(task.reference or {})}
    if len(answer) > MAX_TEXT:
        reason = f"The answer has {len(answer)} characters; at most {MAX_TEXT} are read."
        return failed(reason, checks=[Check(name="length", role="guard", score=0.0, reason=reason)])
    facts = [_fact_check(fact, answer, rules) for fact in rules.get("required", [])]
    checks = [*facts, *(check for look in _LOOKS for check in look(answer, rules))]
    reasons = [check.reason for check in checks if check.reason]
    if not reasons:
        return passed(checks)
    share = sum(1 for check in facts if check.score == 1.0) / len(facts) if facts else 0.0
    broken = any(check.role == "guard" and check.score == 0.0 for check in checks)
    return failed(*reasons[:_MAX_REASONS], score=0.0 if broken else share, checks=checks)


def _fact_check(fact: Rule, answer: str, rules: Rule) -> Check:
    reason = _fact_reason(fact, answer, rules)
    if reason and fact.get("source"):
        reason = f"{reason} Source: {shown(fact['source'], 160)}."
    return Check(name=f"fact {fact['name']}", score=0.0 if reason else 1.0, reason=reason)


def _fact_reason(fact: Rule, answer: str, rules: Rule) -> str:
    name, variants, mention = fact["name"], fact["any"], fact.get("mention", False)
    section, firm = fact.get("section"), not mention
    if section is not None:
        text = "\n".join(
            line for part in sections(answer) if folded(part.name) == folded(section) for line in part.lines
        )
        if not stated(text, variants, mention=mention, firm=firm):
            return f"{name!r} is not stated under {section!r}."
    elif not stated(answer, variants, mention=mention, firm=firm):
        return f"{name!r} is not stated."
    together = fact.get("with", [])
    places = [part for part in pieces(answer) if stated(part, variants, mention=mention, firm=firm)]
    if together:
        places = [
            part
            for part in places
            if all(stated(part, other, mention=mention, firm=firm) for other in together)
        ]
        if not places:
            return f"{name!r} is stated without what belongs to it."
    if (apart := fact.get("without")) and all(stated(part, apart, mention=True) for part in places):
        return f"{name!r} is stated together with what does not belong to it."
    if not fact.get("cite"):
        return ""
    cited = [citations_in(part) for part in places]
    if any(ids & folded_ids(fact["cite"]) for ids in cited):
        return ""
    return f"{name!r} is stated without citing a passage that says so."


def _forbidden(answer: str, rules: Rule) -> list[Check]:
    checks = []
    for claim in rules.get("forbidden", []):
        found = [phrase for phrase in claim["any"] if _claimed(answer, phrase, claim)]
        reason = (
            f"The answer says {shown(found[0], 60)}, which it must not ({claim['name']})." if found else ""
        )
        checks.append(
            Check(name=f"not {claim['name']}", role="guard", score=0.0 if found else 1.0, reason=reason)
        )
    if mixed := mixed_words(answer):
        reason = f"The word {shown(mixed[0], 40)} mixes alphabets."
        checks.append(Check(name="one alphabet a word", role="guard", score=0.0, reason=reason))
    if hidden := hiding_markup(answer):
        reason = f"Markup that hides or strikes out text is not allowed: {shown(hidden, 40)}."
        checks.append(Check(name="open text", role="guard", score=0.0, reason=reason))
    if rules.get("required") and retracted(folded(answer)):
        reason = "The answer takes back what it says."
        checks.append(Check(name="no retraction", role="guard", score=0.0, reason=reason))
    return checks


def _claimed(answer: str, phrase: str, claim: Rule) -> bool:
    return stated(answer, [phrase]) if claim.get("unless_denied") else bool(find_phrase(answer, phrase))


def _length(answer: str, rules: Rule) -> list[Check]:
    counts: dict[str, Callable[[], int]] = {
        "words": lambda: len(words(answer)),
        "characters": lambda: len(answer.strip()),
        "sentences": lambda: len(sentences(answer)),
    }
    checks = []
    for unit, (low, high) in rules.get("length", {}).items():
        count = counts[unit]()
        fits = low <= count <= high
        reason = "" if fits else f"The answer has {count} {unit}; {low} to {high} are asked for."
        checks.append(
            Check(name=f"length in {unit}", role="format", score=1.0 if fits else 0.0, reason=reason)
        )
    if limit := rules.get("sentence_words"):
        long = [part for part in sentences(answer) if len(words(part)) > limit]
        reason = f"A sentence has {len(words(long[0]))} words, more than {limit}." if long else ""
        checks.append(
            Check(name="length of sentences", role="format", score=0.0 if long else 1.0, reason=reason)
        )
    return checks


def _citations(answer: str, rules: Rule) -> list[Check]:
    """Every cited passage exists and holds a fact that the citing sentence states."""
    passages = rules.get("passages")
    if not passages:
        return []
    known = {key.casefold() for key in passages}
    holds = [(fact["any"], folded_ids(fact.get("cite", []))) for fact in rules.get("required", [])]
    reasons = []
    for part in pieces(answer):
        ids = citations_in(part)
        if unknown := sorted(ids - known):
            reasons.append(f"There is no passage {unknown[0].upper()}.")
        backed = set().union(*(support for variants, support in holds if stated(part, variants)), set())
        if idle := sorted((ids & known) - backed):
            reasons.append(f"{idle[0].upper()} is cited for something that it does not say.")
    score = 0.0 if reasons else 1.0
    return [Check(name="citations", role="guard", score=score, reason=reasons[0] if reasons else "")]


def _numbers(answer: str, rules: Rule) -> list[Check]:
    """Every number of the answer stands in the source, citations and list numbers apart."""
    source = rules.get("numbers_from")
    if source is None:
        return []
    known = {found.value for found in find_numbers(source)} | {found.value for found in _plain_digits(source)}
    text = re.sub(r"(?m)^[ \t]*[0-9]{1,2}[.)][ \t]", " ", CITATION.sub(" ", answer))
    foreign = [
        found.value for found in find_numbers(text) if found.value is not None and found.value not in known
    ]
    allowed = {abs(value) for value in known if value is not None}
    foreign = [value for value in foreign if abs(value) not in allowed]
    reason = f"The number {foreign[0]:f} does not stand in the source." if foreign else ""
    return [Check(name="numbers from the source", role="guard", score=0.0 if foreign else 1.0, reason=reason)]


def _plain_digits(source: str) -> list[Any]:
    """Numbers of a date such as 2024-05-03 one by one."""
    return find_numbers(re.sub(r"(?<=[0-9])[-/.:](?=[0-9])", " ; ", source))


def _copying(answer: str, rules: Rule) -> list[Check]:
    if "source" not in rules or "max_copied_words" not in rules:
        return []
    run = copied_run(answer, rules["source"], rules["max_copied_words"])
    reason = f"The answer copies the source: {shown(run, 80)}." if run else ""
    return [Check(name="own words", role="guard", score=0.0 if run else 1.0, reason=reason)]


def _structure(answer: str, rules: Rule) -> list[Check]:
    wanted = rules.get("sections")
    if not wanted:
        return []
    found = sections(answer)
    names = [folded(part.name) for part in found if part.name]
    asked = [folded(part["name"]) for part in wanted]
    reasons = []
    if names != asked:
        reasons.append(
            f"The headings must be exactly {', '.join(part['name'] for part in wanted)}, in this order."
        )
    if rules.get("nothing_else", False) and found and not found[0].name:
        reasons.append("Text stands before the first heading.")
    for part in wanted:
        low, high = part.get("items", (0, 1_000))
        count = sum(len(section.items) for section in found if folded(section.name) == folded(part["name"]))
        if not low <= count <= high:
            reasons.append(f"{part['name']!r} has {count} items; {low} to {high} are asked for.")
    score = 0.0 if reasons else 1.0
    return [Check(name="structure", role="format", score=score, reason=reasons[0] if reasons else "")]


def _patterns(answer: str, rules: Rule) -> list[Check]:
    checks = []
    for entry in rules.get("patterns", []):
        pattern, flags = entry["pattern"], entry.get("flags", ())
        wanted = entry.get("present", True)
        if len(answer) > (most := text_limit(pattern, flags)):
            reason = f"The answer has {len(answer)} characters; {entry['name']} reads at most {most}."
        else:
            found = compiled(pattern, flags).search(answer) is not None
            verb = "lacks" if wanted else "breaks the rule"
            reason = "" if found == wanted else f"The answer {verb}: {entry['name']}."
        checks.append(Check(name=entry["name"], role="format", score=0.0 if reason else 1.0, reason=reason))
    return checks


_LOOKS: tuple[Callable[[str, Rule], list[Check]], ...] = (
    _forbidden, _length, _citations, _numbers, _copying, _structure, _patterns,
)  # fmt: skip


def _check(params: Mapping[str, Any], reference: Any) -> None:
    rules = {**params, **(reference or {})}
    if not rules.get("required"):
        low = max((bounds[0] for bounds in rules.get("length", {}).values()), default=0)
        if low < 1 or not (rules.get("patterns") or rules.get("sections")):
            raise InvalidVerifier("Verifier 'rules': without a required fact, an empty answer would pass.")
    for unit, (low, high) in rules.get("length", {}).items():
        if low > high:
            raise InvalidVerifier(f"Verifier 'rules': at least {low} and at most {high} {unit} cannot be.")
    for fact in rules.get("required", []):
        for key in fact.get("cite", []):
            if key not in rules.get("passages", {}):
                raise InvalidVerifier(f"Verifier 'rules': fact {fact['name']!r} cites {key!r}, no passage.")
        if fact.get("cite") and not any(_supports(rules["passages"][key], fact) for key in fact["cite"]):
            raise InvalidVerifier(f"Verifier 'rules': no cited passage says {fact['name']!r}.")
    check_params(rules)


def check_params(params: Mapping[str, Any]) -> None:
    """No pattern could run for ever."""
    for index, entry in enumerate(params.get("patterns", [])):
        try:
            compiled(entry["pattern"], entry.get("flags", ()))
        except UnsafePattern as error:
            raise InvalidVerifier(f"Verifier 'rules': {error}", place=f"patterns/{index}") from error


def _supports(passage: str, fact: Rule) -> bool:
    return any(find_phrase(passage, variant) for variant in fact["any"])


KIND = VerifierKind(
    name="rules",
    title="Rules for prose",
    description=(
        "Facts the answer must state (with citations where asked), claims it must not make, length, numbers "
        "from the source, own words, headings and items. The reference adds rules to the parameters."
    ),
    verify=_verify,
    params_schema=RULES_SCHEMA,
    reference_schema={"anyOf": [{"type": "null"}, RULES_SCHEMA]},
    check=_check,
    check_params=check_params,
)
