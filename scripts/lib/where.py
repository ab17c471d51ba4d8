# SPDX-License-Identifier: GPL-2.0
"""Where build products and results are, as scripts/lib/lib.sh has it for the scripts in bash."""
import os
import re

import usage

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def longterm():
    """Returns the longterm kernel that BASE names, such as '6.12'; '' for the kernel that the series is made for."""
    base = os.environ.get('BASE', '')
    if base and os.path.exists(f'{TOP}/patches/{base}/kernel.pin'):
        return base
    with open(f'{TOP}/scripts/kernel.pin', encoding='utf-8') as pin:
        if base and not re.search(rf'^PIN_VERSION={re.escape(base)}\.', pin.read(), re.M):
            usage.fail(f'there is no series for Linux {base}', 'BASE is a folder of patches/ with a kernel.pin')
    return ''


BUILD = os.path.join(os.path.abspath(os.environ.get('IOBAND_BUILD') or TOP + '/build'), longterm()).rstrip('/')
OUT = os.path.join(os.path.abspath(os.environ.get('IOBAND_OUT') or TOP + '/out'), longterm()).rstrip('/')
