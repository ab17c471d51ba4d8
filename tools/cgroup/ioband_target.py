# SPDX-License-Identifier: GPL-2.0
"""What a word on the command line stands for: a disk, a process, a cgroup or a path."""

import dataclasses
import os
import re

from ioband_disk import Place, node_of, number_of, place
from ioband_read import number, read, up, word

# flag in /proc/PID/stat: the task is a kernel thread
PF_KTHREAD = 0x00200000


class NotFound(Exception):
    """There is no disk, process, cgroup or path of that name; the text names it."""


@dataclasses.dataclass
class Target:
    """What a word stands for. pid: 0 if no process; cgroup: "" if none; place: None if it implies no disk."""

    text: str
    pid: int = 0
    about: str = ''
    cgroup: str = ''
    place: Place | None = None
    notes: list = dataclasses.field(default_factory=list)


def cgroup_of(pid, where):
    """(Path of a process's cgroup, "" if it is not visible here; sentences about it)."""
    for line in read(f'/proc/{pid}/cgroup'):
        _, names, path = line.split(':', 2) if line.count(':') > 1 else ('', ' ', '')
        if where.version == 2 and names or where.version == 1 and 'blkio' not in names.split(','):
            continue
        notes = []
        if path.endswith(' (deleted)'):
            path = path[: -len(' (deleted)')]
            notes.append(
                f'its cgroup {path} has been removed: on v2 the limits of the groups above it apply, on v1 none does'
            )
        base = where.base.rstrip('/')
        if path.startswith('/..') or not (path + '/').startswith(base + '/'):
            return '', [f'its cgroup {path} is outside of the part of the hierarchy that is mounted here']
        path = path[len(base) :] or '/'
        here = next((one for one in up(path) if os.path.isdir(where.directory(one))), '/')
        return here, notes
    raise NotFound(f'process {pid} has gone')


def process(text, where):
    """The Target of a process."""
    pid = int(text)
    about = word(f'/proc/{pid}/stat')
    if not about or ')' not in about:
        raise NotFound(f'there is no process {text}')
    name = about[about.index('(') + 1 : about.rindex(')')]
    state, *rest = about[about.rindex(')') + 2 :].split()
    found = Target(text, pid, f'process {pid} ({name}), state {state}')
    if state in 'ZX':
        found.notes.append('it has ended, and does no I/O any more')
    if state == 'D' and word(f'/proc/{pid}/wchan') not in ('', '0'):
        found.notes.append(f'it waits in the kernel, in {word(f"/proc/{pid}/wchan")}()')
    if number(''.join(rest[5:6])) & PF_KTHREAD:
        found.notes.append(
            'it is a kernel thread: I/O that it does for a group is charged to that group, other I/O to the root group'
        )
    if where:
        found.cgroup, notes = cgroup_of(pid, where)
        found.notes += notes
    return found


def path_target(text, where):
    """The Target of a path: the directory of a cgroup, or data in a file system."""
    try:
        found = place(text)
    except OSError as error:
        raise NotFound(f'{text}: {error.strerror}') from None
    if not found.mount or found.mount.kind not in ('cgroup', 'cgroup2'):
        return Target(text, place=found)
    directory = os.path.realpath(text)
    directory = directory if os.path.isdir(directory) else os.path.dirname(directory)
    if where and (directory + '/').startswith(where.root.rstrip('/') + '/'):
        return Target(text, cgroup=directory[len(where.root.rstrip('/')) :] or '/')
    raise NotFound(
        f'{text}: this hierarchy of cgroups has no block controller'
        + (f'; that at {where.root} has it' if where else '')
    )


def by_name(text, where):
    """The Target of a cgroup: by its path below the root of the hierarchy, or by its name if only one has that name."""
    path = '/' + text.strip('/')
    if os.path.isdir(where.directory(path)):
        return Target(text, cgroup=path)
    found = [
        directory[len(where.root) :] for directory, _, _ in os.walk(where.root) if os.path.basename(directory) == text
    ]
    if len(found) > 1:
        raise NotFound(f'several cgroups are called {text}: {" ".join(sorted(found)[:10])}')
    if not found:
        raise NotFound(f'{text}: there is no such disk, process, cgroup or path')
    return Target(text, cgroup=found[0])


def target_of(text, where):
    """The Target of a word on the command line; raises NotFound if there is none."""
    if re.fullmatch('[0-9]{1,9}', text):
        return process(text, where)
    if re.fullmatch('[0-9]+:[0-9]+', text) and not os.path.lexists(text):
        if not os.path.isdir(f'/sys/dev/block/{text}'):
            raise NotFound(f'there is no disk {text}')
        return Target(text, place=Place(text, nodes=[node_of(text)]))
    if '/' not in text and number_of(text):
        return Target(text, place=Place(text, nodes=[node_of(number_of(text))]))
    is_cgroup = where and text.strip('/') and os.path.isdir(where.directory('/' + text.strip('/')))
    if text and (os.path.lexists(text) or text.startswith('/') and not is_cgroup):
        return path_target(text, where)
    if not text or not where:
        raise NotFound(f'{text or "an empty word"}: there is no such disk, process or path')
    return by_name(text, where)
