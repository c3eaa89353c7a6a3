"""Packs bring task families for one domain; ``packs.registry`` finds them by entry point."""
