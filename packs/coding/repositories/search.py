"""A search index over short documents."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository

_WORDS = (
    "river",
    "stone",
    "light",
    "garden",
    "winter",
    "paper",
    "the",
    "and",
    "boat",
    "signal",
    "of",
    "glass",
)


def make(rng: Random) -> Repository:
    stop = rng.sample(("the", "and", "of", "a"), 3)
    title, shortest, around = rng.randint(2, 5), rng.randint(2, 3), rng.randint(1, 3)
    files = {
        "search/__init__.py": '"""A small search index. A document is (title, text)."""\n',
        "search/words.py": f'''"""Texts as words."""

STOP = {sorted(stop)}
SHORTEST = {shortest}


def words(text):
    """Lower-case words without marks, stop words and very short words left out."""
    cleaned = "".join(c if c.isalnum() else " " for c in text.lower())
    return [word for word in cleaned.split() if word not in STOP and len(word) >= SHORTEST]


def stem(word):
    """Plurals are found with their singular: boats -> boat, but glass stays."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
''',
        "search/index.py": f'''"""Finding and ranking."""

from search.words import stem, words

TITLE_WEIGHT = {title}


def build(documents):
    """Stem -> {{document number: points}}; a word in the title counts TITLE_WEIGHT times."""
    index = {{}}
    for number, (title, text) in enumerate(documents):
        for word in words(text):
            places = index.setdefault(stem(word), {{}})
            places[number] = places.get(number, 0) + 1
        for word in words(title):
            places = index.setdefault(stem(word), {{}})
            places[number] = places.get(number, 0) + TITLE_WEIGHT
    return index


def find(documents, query):
    """Numbers of the documents that hold every word of the query, most points first, then by number."""
    index = build(documents)
    wanted = {{stem(word) for word in words(query)}}
    if not wanted:
        return []
    found = set.intersection(*(set(index.get(word, {{}})) for word in wanted))
    points = {{n: sum(index[word][n] for word in wanted) for n in found}}
    return sorted(found, key=lambda n: (-points[n], n))
''',
        "search/snippets.py": f'''"""What a result shows."""

from search.words import stem, words

AROUND = {around}


def snippet(text, query):
    """The first matching word and AROUND words before and after it; "" when nothing matches."""
    wanted = {{stem(word) for word in words(query)}}
    parts = text.split()
    for place, part in enumerate(parts):
        if any(stem(word) in wanted for word in words(part)):
            return " ".join(parts[max(0, place - AROUND) : place + AROUND + 1])
    return ""
''',
    }
    bugs = (
        Bug("search/words.py", "in text.lower())", "in text)", "A search for River does not find river."),
        Bug(
            "search/words.py",
            "len(word) >= SHORTEST",
            "len(word) > SHORTEST",
            f"Words of {shortest} letters are never found.",
        ),
        Bug("search/words.py", ' and not word.endswith("ss")', "", "A search for glas finds glass."),
        Bug(
            "search/index.py",
            "places.get(number, 0) + 1",
            "1",
            "A document that names a word five times ranks no higher than one that names it once.",
        ),
        Bug(
            "search/index.py",
            "places.get(number, 0) + TITLE_WEIGHT",
            "places.get(number, 0) + 1",
            "Words in the title count no more than others.",
        ),
        Bug(
            "search/index.py",
            "set.intersection(",
            "set.union(",
            "A search for two words also shows documents with only one of them.",
        ),
        Bug("search/index.py", "(-points[n], n)", "(points[n], n)", "The best results come last."),
        Bug(
            "search/index.py",
            "{stem(word) for word in words(query)}",
            "set(words(query))",
            "A search for boats finds nothing although there are boats.",
        ),
        Bug(
            "search/snippets.py",
            "max(0, place - AROUND)",
            "place - AROUND",
            "Snippets are empty when the word stands near the start.",
        ),
        Bug(
            "search/snippets.py", "place + AROUND + 1", "place + AROUND", "Snippets stop one word too early."
        ),
    )

    def word(r: Random) -> str:
        found = r.choice(_WORDS)
        found = found + "s" if r.random() < 0.3 and found not in ("the", "and", "of") else found
        found = r.choice((found, found, found.title(), "ox", "oak"))
        return found + r.choice(("", "", "", ",", "."))

    def text(r: Random, least: int, most: int) -> str:
        return " ".join(word(r) for _ in range(r.randint(least, most)))

    def documents(r: Random) -> str:
        return repr([(text(r, 1, 3), text(r, 6, 12)) for _ in range(4)])

    checks = (
        Check("find", "from search.index import find", lambda r: f"find({documents(r)}, {text(r, 1, 1)!r})"),
        Check(
            "find_two", "from search.index import find", lambda r: f"find({documents(r)}, {text(r, 2, 2)!r})"
        ),
        Check(
            "build",
            "from search.index import build",
            lambda r: f"build({[(text(r, 1, 2), text(r, 3, 5)) for _ in range(2)]})",
        ),
        Check("words", "from search.words import words", lambda r: f"words({text(r, 4, 8)!r})"),
        Check(
            "stem",
            "from search.words import stem",
            lambda r: f"[stem(w) for w in {r.sample(('glass', 'boats', 'grass', 'keys', 'pen', 'gas'), 3)}]",
        ),
        Check(
            "snippet",
            "from search.snippets import snippet",
            lambda r: f"snippet({text(r, 5, 10)!r}, {text(r, 1, 2)!r})",
        ),
    )
    return Repository("search", "a search index over short documents", files, bugs, checks)
