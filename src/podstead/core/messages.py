"""Text for messages."""


def counted(number: int, noun: str) -> str:
    """The number with its noun, as in "1 second", "2 seconds" and "0 repositories"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number} {noun}s"


# Text that is safe to print.
#
# Names come from strangers. A terminal acts on control characters, shows others in the wrong order
# (U+202E), and takes what follows a line break for a line of ours.


def printable(text: str) -> str:
    r"""The text with each character that does not show as itself escaped: ``\x1b``, ``\n``,
    ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    # Halves of surrogate pairs stand for the bytes of names that are not UTF-8.
    return character.encode("unicode_escape").decode("ascii")
