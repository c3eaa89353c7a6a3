"""Texts cut into words. Each metric says which cut it uses; scores are comparable only with the same one."""

import re

# Letters and digits of any script; a script that is written without spaces counts sign by sign.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_WORD_OR_SIGN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+|[^\w\s]|_")

_13A = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def words(text: str) -> list[str]:
    """Lower-case words without punctuation, as rouge-score cuts English; other scripts are kept."""
    return _WORD.findall(text.lower())


def words_and_signs(text: str) -> list[str]:
    """Lower-case words, and every punctuation mark as a token of its own."""
    return _WORD_OR_SIGN.findall(text.lower())


def tokens_13a(text: str) -> list[str]:
    """mteval-v13a, the tokenizer that sacreBLEU calls ``13a``: case is kept, punctuation comes off."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        text = text.replace(entity, sign)
    text = f" {text} "
    for pattern, replacement in _13A:
        text = pattern.sub(replacement, text)
    return text.split()
