# SPDX-License-Identifier: GPL-2.0
"""The group and the disk of stress_failslab.py, and the operations on them."""
import errno
import mmap
import os

from stress_files import get, put

NULLB = '/sys/kernel/config/nullb'
DEBUG = '/sys/kernel/debug'
V1_KEYS = ('read_bps', 'read_iops', 'write_bps', 'write_iops')


class Host:
    """A group and a disk, and the operations on them."""

    def __init__(self, args):
        self.root = args.cgroup
        self.v1 = os.path.exists(f'{self.root}/blkio.reset_stats')
        self.group = f'{self.root}/slab'
        self.disk = None
        self.buffer = mmap.mmap(-1, 4096)
        self.node = -1      # no descriptor

    def make_disk(self):
        """Makes a null_blk disk that never had a limit or a weight."""
        path = f'{NULLB}/smpslab'
        os.mkdir(path)
        for key, value in (('size', '16'), ('memory_backed', '1'), ('irqmode', '2'), ('completion_nsec', '10000'), ('power', '1')):
            put(f'{path}/{key}', value)
        self.disk = get('/sys/block/smpslab/dev').strip()
        self.node = os.open('/dev/smpslab', os.O_RDWR | os.O_DIRECT)

    def end_disk(self):
        """Removes the disk."""
        os.close(self.node)
        put(f'{NULLB}/smpslab/power', '0')
        os.rmdir(f'{NULLB}/smpslab')

    def make_group(self):
        """mkdir."""
        os.mkdir(self.group)

    def end_group(self):
        """Removes the group, if it exists."""
        if os.path.isdir(self.group):
            os.rmdir(self.group)

    def rule(self, value):
        """Sets limits in bytes per second; 0 removes them."""
        if self.v1:
            put(f'{self.group}/blkio.throttle.write_bps_device', f'{self.disk} {value}')
        else:
            put(f'{self.group}/io.max', f'{self.disk} rbps={value or "max"} wbps={value or "max"}')

    def rules(self):
        """What the files say."""
        if self.v1:
            return ''.join(get(f'{self.group}/blkio.throttle.{key}_device') for key in V1_KEYS)
        return get(f'{self.group}/io.max')

    def weight(self, value):
        """Sets the group's weight for all disks."""
        put(f'{self.group}/{"blkio.weight" if self.v1 else "io.weight"}', str(value))

    def own_weight(self, value):
        """Sets the group's weight for this disk."""
        put(f'{self.group}/{"blkio.weight_device" if self.v1 else "io.weight"}', f'{self.disk} {value}')

    def weights(self):
        """What the files say."""
        if self.v1:
            return get(f'{self.group}/blkio.weight') + get(f'{self.group}/blkio.weight_device')
        return get(f'{self.group}/io.weight')

    def enter(self):
        """Moves this process into the group."""
        put(f'{self.group}/cgroup.procs', '0')

    def leave(self):
        """Moves this process out of the group."""
        put(f'{self.root}/cgroup.procs', '0')

    def write(self):
        """Writes a block by direct I/O."""
        self.buffer[:4] = b'fail'
        os.pwrite(self.node, self.buffer, 4096)

    def read(self):
        """Reads the block back, and compares it."""
        self.buffer[:4] = bytes(4)
        os.preadv(self.node, [self.buffer], 4096)
        if self.buffer[:4] != b'fail':
            raise OSError(errno.EILSEQ, 'read back something else')

    def stat_files(self):
        """Reads all files of the group."""
        for name in sorted(os.listdir(self.group)):
            if name.startswith(('blkio.throttle', 'blkio.weight', 'io.max', 'io.weight', 'io.stat')):
                get(f'{self.group}/{name}')
        path = f'{DEBUG}/block/smpslab/ioband/groups'
        if os.path.exists(path):
            get(path)
