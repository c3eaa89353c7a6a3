"""Knowledge work: summaries, cited answers, mails, rewriting, agendas."""

from packs.knowledge.families import PACK

__all__ = ["PACK"]
