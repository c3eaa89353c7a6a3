"""The prompts that a probe asks unless it is given others: short, fixed, with short answers."""

from collections.abc import Sequence

DEFAULT_PROMPTS: tuple[str, ...] = (
    "Invoice INV-204\nTotal 118.40 EUR\nReturn the total as a number.",
    "Which is larger, 9.11 or 9.9? Answer with the number.",
    "Write the word “balance” backwards.",
    "Net 40 EUR, tax 8. What is the gross amount?",
    "Name the day that comes two days after Friday.",
    "Continue the sequence with one number: 2, 3, 5, 7, 11,",
    "Answer with one JSON object with the keys invoice and total for: Invoice RE-77, total 12.50 USD.",
    "Write 31 March 2024 as an ISO date.",
    "Translate “delivery note” into German.",
    "How many letters are in “ledger”? Answer with the number.",
    "Write a Python function add(a, b) that returns their sum.",
    "Name one colour that is not in the rainbow.",
    "Write 1,204.50 in words.",
    "Is 91 a prime number? Answer yes or no.",
    "Complete: The early bird catches the",
    "Goods 23, shipping 4. Total?",
    "Give a synonym of “quick”.",
    "Write the chemical symbol of iron.",
    "List 340 EUR, discount 40. To pay?",
    "Choose heads or tails. Answer with one word.",
)

# Candidates for first tokens, beside a probe's own prompts: a word or two, which leave the answer open.
SHORT_PROMPTS: tuple[str, ...] = (
    *("x", "hike", "total", "yes", "def", "Ada", "{", "1", "the", "Invoice", "river", "blue", "why", "7"),
    *("code", "lamp", "Tuesday", "sum", "north", "if", "moon", "paper", "open", "salt", "left", "go"),
    *("table", "never", "iron", "music", "rain", "late", "box", "green", "word", "price", "hello", "cat"),
    *("return", "March", "apple", "zero", "stone", "king", "light", "list", "cold", "north wind", "tea"),
    *("A or B", "odd or even", "up or down", "pick a card", "any number", "one word", "a name", "a city"),
    *("a fruit", "cat or dog"),
)

# Candidates for border inputs: they leave the choice to the model, so that two first words are often
# about as likely, and have enough words for a small change of the model to move them.
_PAIRS: tuple[tuple[str, str], ...] = (
    *(("moon", "river"), ("lamp", "paper"), ("stone", "rain"), ("apple", "cheese"), ("north", "south")),
    *(("table", "window"), ("salt", "honey"), ("music", "silence"), ("iron", "glass"), ("winter", "summer")),
    *(("horse", "eagle"), ("bridge", "tunnel"), ("letter", "parcel"), ("king", "judge"), ("tea", "water")),
    *(("gold", "copper"), ("forest", "desert"), ("bread", "soup"), ("key", "ladder"), ("train", "boat")),
    *(("red", "green"), ("doctor", "baker"), ("circle", "square"), ("candle", "mirror"), ("cloud", "hill")),
    *(("pencil", "hammer"), ("piano", "drum"), ("cat", "dog"), ("island", "valley"), ("invoice", "receipt")),
    *(("morning", "evening"), ("spoon", "knife"), ("wool", "silk"), ("garden", "kitchen"), ("seven", "four")),
    *(("engine", "wheel"), ("price", "weight"), ("whale", "shark"), ("coat", "hat"), ("street", "square")),
    *(("pepper", "sugar"), ("clock", "calendar"), ("fire", "ice"), ("tower", "castle"), ("pilot", "sailor")),
    *(("feather", "leaf"), ("story", "poem"), ("left", "right"), ("lemon", "cherry"), ("bank", "market")),
)
_OPEN: tuple[str, ...] = (
    "Choose one word: {} or {}.",
    "Write one sentence about {} and {}.",
    "Name something that goes with “{}” and “{}”.",
    "Which do you like better, {} or {}? Answer with one word.",
    "Finish the sentence: between the {} and the {}",
)


def border_candidates(prompts: Sequence[str]) -> list[str]:
    """Prompts to look for border inputs among: kinds in turn, then ``prompts`` and the short ones."""
    made = [kind.format(*pair) for pair in _PAIRS for kind in _OPEN]
    return list(dict.fromkeys([*made, *prompts, *SHORT_PROMPTS]))
