# SPDX-License-Identifier: GPL-2.0
"""Where build products and results are, as scripts/lib/lib.sh has it for the scripts in bash."""
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def longterm():
    """Returns the longterm kernel that BASE names, such as '6.12'; '' for the kernel that the series is made for."""
    base = os.environ.get('BASE', '')
    return base if base and os.path.exists(f'{TOP}/patches/{base}/kernel.pin') else ''


BUILD = os.path.join(os.path.abspath(os.environ.get('IOBAND_BUILD') or TOP + '/build'), longterm()).rstrip('/')
OUT = os.path.join(os.path.abspath(os.environ.get('IOBAND_OUT') or TOP + '/out'), longterm()).rstrip('/')
