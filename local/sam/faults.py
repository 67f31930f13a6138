"""The failures of `make sam-…`."""


class Fault(Exception):
    """A failure, with the reason and the remedy for a person."""
