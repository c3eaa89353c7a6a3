"""Plain helpers behind the template tags: words for states, numbers as text, geometry of small plots."""
