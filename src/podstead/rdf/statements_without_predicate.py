"""Finding statements that consist only of a list or a bracketed blank node.

N3 and SPARQL allow a list or a bracketed blank node without a predicate, as in ``(1 2) .``. The RDF
library does not: its TriG parser refuses a list without a predicate, and its N3 parser attaches it
to the surrounding statement. Such statements are found here, so that callers can complete them.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.rdf.lexing import Lexer, Token, TokenKind


@dataclass(slots=True)
class _Statement:
    """The state of a statement: its open brackets, its terms, and the terms within brackets."""

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
        """Whether the statement is one non-empty list or bracketed blank node."""
        return self.depth == 0 and self.terms == 1 and self.enclosed > 0

    @property
    def is_single_term(self) -> bool:
        """Whether the statement is a single term or empty brackets, which is invalid."""
        return self.depth == 0 and self.terms == 1 and self.enclosed == 0


class StatementsWithoutPredicate:
    """Follows the tokens of one text to find statements without a predicate."""

    __slots__ = ("_around", "_is_watching", "_statement")

    def __init__(self, lexer: Lexer) -> None:
        self._is_watching = lexer.has_brackets
        self._statement = _Statement()
        self._around: list[_Statement] = []

    def ends_bracketed_subject(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after a list or bracketed node without
        predicate."""
        if not self._is_watching:
            return False
        ended = self._ended_by(token)
        return ended is not None and ended.is_bracketed_subject

    def ends_single_term(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after a single term, within braces.

        Must be called for every token of a text, even if it has no brackets.
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
