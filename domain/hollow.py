"""Answers with too little content to be worth a judge's time: they earned passes from judges that read
them (arXiv 2507.08794, "master keys")."""

import re
import unicodedata

from domain.quoting import MAX_CHARACTERS, visible

_OPENERS = (
    "thought process", "let's solve this problem step by step", "let's solve this step by step", "solution",
    "let's think step by step", "step by step", "the answer is", "answer", "final answer", "explanation",
    "here is the answer", "here is my answer", "sure", "of course", "i will now solve this", "lösung",
    "solución", "解", "かいせつ", "resposta", "let me think about this", "let me think", "réponse", "antwort",
    "respuesta", "ответ", "решение", "答案", "risposta", "here is my response", "as requested", "okay",
    "reasoning", "analysis", "conclusion", "in conclusion", "to summarize", "great question",
)  # fmt: skip


def hollow(answer: str, *, min_words: int = 3, question: str = "") -> str:
    """Why ``answer`` has too little content to be worth a judge's time, or an empty text."""
    answer, question = answer[:MAX_CHARACTERS], question[:MAX_CHARACTERS]  # a beginning shows what it is
    plain = unicodedata.normalize("NFKC", visible(answer)).casefold().replace("’", "'")
    found = re.findall(r"\w+", plain)
    if not any(character.isalnum() for character in plain):
        return "The answer holds no word and no number."
    bare = " ".join(found)
    if any(bare == " ".join(re.findall(r"\w+", opener)) for opener in _OPENERS):
        return "The answer is an opening without content."
    if len(found) < min_words:
        said = f"{len(found)} word{'' if len(found) == 1 else 's'}"
        return f"The answer has only {said}; at least {min_words} are needed to judge it."
    if len(set(found)) * 4 < min(len(found), 40):
        return "The answer repeats a few words over and over."
    if question and bare == " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", question).casefold())):
        return "The answer only repeats the question."
    return ""
