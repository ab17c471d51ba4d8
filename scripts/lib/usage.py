# SPDX-License-Identifier: GPL-2.0
"""The command line of the scripts in Python: errors have the form that they have in lib.sh."""
import argparse
import os
import sys


class Parser(argparse.ArgumentParser):
    """Has the docstring of a script as its help text; an error is a line "error:" and a line " next:"."""

    def __init__(self, description=None, **more):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, **more)

    def error(self, message):
        """Prints what is wrong and what to do, and exits with 2."""
        fail(message, f'{sys.argv[0]} --help', 2)


def fail(cause, following, status=1):
    """Prints a cause and what to do next, and exits with a status."""
    print(f'error: {cause}\n next: {following}', file=sys.stderr)
    sys.exit(status)


def folder(text):
    """The path of a folder that exists, as an argument of the command line."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f'there is no folder {text}')
    return text


def positive(text):
    """A whole number above 0, as an argument of the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number above 0')
    return int(text)
