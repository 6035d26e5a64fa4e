"""Where is a statement nothing but its subject?

N3 and SPARQL let a list or a node in brackets stand alone, as in ``(1 2) .``: it says that the list
is there. The RDF library does not: its TriG refuses a list without a predicate, and its N3 takes
the subject of what stands around for another one. So such statements are found, to be completed.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.rdf.lexing import Lexer, Token, TokenKind


@dataclass(slots=True)
class _Statement:
    """What was seen of a statement: the brackets that are open, the terms, and those enclosed."""

    depth: int = 0
    terms: int = 0
    enclosed: int = 0

    def has_term(self) -> None:
        if self.depth:
            self.enclosed += 1
        else:
            self.terms += 1

    @property
    def is_bracketed_subject(self) -> bool:
        """Empty brackets say nothing, and no grammar has them stand alone."""
        return self.depth == 0 and self.terms == 1 and self.enclosed > 0

    @property
    def is_single_term(self) -> bool:
        """Whether it is no statement for want of brackets, or of something in them."""
        return self.depth == 0 and self.terms == 1 and self.enclosed == 0


class StatementsWithoutPredicate:
    """Watches the tokens of one text; one without brackets has none that say anything."""

    __slots__ = ("_around", "_is_watching", "_statement")

    def __init__(self, lexer: Lexer) -> None:
        self._is_watching = lexer.has_brackets
        self._statement = _Statement()
        self._around: list[_Statement] = []

    def ends_bracketed_subject(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after brackets that stand alone."""
        if not self._is_watching:
            return False
        ended = self._ended_by(token)
        return ended is not None and ended.is_bracketed_subject

    def ends_single_term(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after a single term, within braces.

        To be asked of every token of a text, also of one without brackets.
        """
        is_within = bool(self._around)
        ended = self._ended_by(token)
        return is_within and ended is not None and ended.is_single_term

    def _ended_by(self, token: Token) -> _Statement | None:
        statement = self._statement
        if token.kind is not TokenKind.PUNCTUATION:
            statement.has_term()
            return None
        match token.text:
            case "(" | "[":
                statement.has_term()
                statement.depth += 1
            case ")" | "]":
                statement.depth -= 1
            case "{":
                statement.has_term()
                self._around.append(statement)
                self._statement = _Statement()
            case "}":
                self._statement = self._around.pop() if self._around else _Statement()
                return statement
            case "." if statement.depth == 0:
                self._statement = _Statement()
                return statement
        return None
