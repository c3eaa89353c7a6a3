from django import forms

from apps.loop.services import MAX_SEED


class TurnForm(forms.Form):
    """Without a seed one is drawn."""

    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_SEED,
        error_messages={"invalid": "The seed must be a whole number."},
    )
