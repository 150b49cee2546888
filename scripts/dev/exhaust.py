"""Reads values that pydantic validates only when they are read."""


def exhaust(value):
    """Reads a value to its end: what is in a type Iterable is validated only when it is read."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, str) or not hasattr(value, "__iter__"):
        return
    for inner in value:
        exhaust(inner)
