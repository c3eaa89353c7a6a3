"""The template that `flywheel packs new` copies. It is no pack itself: nothing declares it."""
