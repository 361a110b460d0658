"""The part of `docs/` that is made from code: `python -m scripts.docs`."""
