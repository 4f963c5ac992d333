"""Checks of errors for users: their class, and one line that has given words."""

import contextlib

import pytest


@contextlib.contextmanager
def raises_line(error, *words):
    """Checks that the block raises an error of a class, whose message is one line that contains all words."""
    with pytest.raises(error) as raised:
        yield
    message = str(raised.value)
    assert len(message.splitlines()) == 1, message
    for text in words:
        assert text in message, message


def error_table(error, *cases):
    """Returns a test of pairs of a function without arguments and the words of the error that it raises."""

    @pytest.mark.parametrize(("call", "words"), cases)
    def test(call, words):
        with raises_line(error, words):
            call()

    return test
