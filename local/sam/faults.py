"""Why a command of `make sam-…` cannot be done."""


class Fault(Exception):
    """The reason, and what to do, in words for a person."""
