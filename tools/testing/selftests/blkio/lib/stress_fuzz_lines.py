# SPDX-License-Identifier: GPL-2.0
"""Makes the lines that stress_fuzz.py writes to control files, with the errno that each must give."""
import errno
import random

U64 = 2**64 - 1
V1_LIMITS = [f'blkio.throttle.{rw}_{unit}_device' for rw in ('read', 'write') for unit in ('bps', 'iops')]
V2_KEYS = ['rbps', 'wbps', 'riops', 'wiops']
GARBAGE = ['', ' ', '\n', 'max', 'default', '-1', '+5', '0x10', '10M', '1e6', '1.5', '\t', '=', ':', '%s%n', 'é', '\x7f', 'rbps',
           'rbps=', '=5', 'rbps==5', 'rbps=5=5', 'RBPS=5', '00', '1 2', 'nan', '٣', '9' * 30, '9' * 3000, 'a' * 4000]


class Rng(random.Random):
    """A generator with cheap choices: those of the module take longer than the writes."""

    def choice(self, seq):
        """Returns one of seq."""
        return seq[int(self.random() * len(seq))]

    def randrange(self, start, stop=None):  # type: ignore[override]
        """Returns an integer from [start, stop), or [0, start)."""
        if stop is None:
            start, stop = 0, start
        return start + int(self.random() * (stop - start))


NUMBERS = (1, 2, 512, 4096, 65536, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, U64 - 1, U64)


def limit(key, value):
    """The limit that a value sets; None for no limit. Mainline has 32 bits for I/Os."""
    return None if value == U64 or (key.endswith('iops') and value == 2**32 - 1) else value


def number(rng):
    """Returns a valid value of any magnitude."""
    if rng.random() < 0.5:
        return rng.choice(NUMBERS)
    return 1 + rng.getrandbits(rng.randrange(1, 64))


def bad_number(rng):
    """Returns (text, errno) of a value that must be refused."""
    if rng.random() < 0.3:
        return rng.choice([str(2**64), str(2**64 + 1), str(10**30), '1' + '0' * 2000]), errno.ERANGE
    good = str(number(rng))
    return rng.choice(['-' + good, '+' + good, good + 'M', good + 'k', '0x' + good, good + '.0', good + 'x', 'x' + good,
                       good + ',1', good + '-']), errno.EINVAL


def v1_body(rng):
    """Returns (body, expected errno or 0, value to be set) of a line for v1."""
    kind = rng.random()
    if kind < 0.6:
        value = number(rng) if rng.random() < 0.7 else 0
        return rng.choice(['', ' ', '  ']) + str(value) + rng.choice(['', '\n', ' ', ' \n']), 0, value
    if kind < 0.8:
        text, code = bad_number(rng)
        return text, code, None
    if kind < 0.9:
        return f'{number(rng)} {number(rng)}', errno.EINVAL, None
    return rng.choice(['', 'max', 'abc', '-', '5 x', '\n', ' ']), errno.EINVAL, None


def v2_body(rng):
    """Returns (body, expected errno or 0, {key: value}) of a line for io.max."""
    pairs, values = [], {}
    for _ in range(rng.randrange(1, 6)):
        key, value = rng.choice(V2_KEYS), number(rng) if rng.random() < 0.7 else None
        values[key] = value
        pairs.append(f'{key}={"max" if value is None else value}')
    if rng.random() < 0.6:
        return rng.choice([' ', '  ']).join(pairs) + rng.choice(['', '\n', ' ']), 0, values
    text, code = bad_number(rng)
    wrong, code = rng.choice([(f'{rng.choice(V2_KEYS)}={text}', code), (f'{rng.choice(V2_KEYS)}=0', errno.ERANGE), ('bps=5', errno.EINVAL),
                              ('rbps', errno.EINVAL), ('rbps=', errno.EINVAL), ('=7', errno.EINVAL), ('7', errno.EINVAL)])
    # the kernel parses from the left: the first wrong word decides
    pairs.insert(rng.randrange(len(pairs) + 1), wrong)
    return ' '.join(pairs), code, None


def device(rng, devs, partition):
    """Returns (text, device or None, errno if the text must be refused)."""
    kind = rng.random()
    if kind < 0.85:
        dev = rng.choice(devs)
        return dev, dev, 0
    if kind < 0.95:
        gone = [('0:0', errno.ENODEV), ('250:77', errno.ENODEV), ('4095:1048575', errno.ENODEV)]
        return (*rng.choice(gone + ([(partition, errno.ENODEV)] if partition else [])), )[:1] + (None, errno.ENODEV)
    dev = rng.choice(devs)
    return rng.choice(['', ':', dev.replace(':', ''), dev.replace(':', '.'), 'x' + dev, dev + ':', dev.split(':', 1)[0] + ':', '-' + dev]), None, None
