"""The stages of a run on their own, as the scripts call them."""
