# SPDX-License-Identifier: GPL-2.0
"""The disks of a round of torture: makes them, changes them, removes them."""
import contextlib
import os
import shutil
import subprocess
import time

from attack_world import MIB, NULLB, WorldError, loop, mount, read, run, write

SCSI = '/sys/bus/pseudo/drivers/scsi_debug'
DEBUG_BLOCK = '/sys/kernel/debug/block'
SIZE_MIB = 400              # of a disk: xfs needs 300; blocks that are not written take no memory
ZONED_MIB = 64
SLOT = 8 * MIB              # bytes that one load writes
SLOTS = 3                   # loads of a disk; a part of the same size after theirs is for discards
DM = ('dmsetup', '--noudevsync', '--noudevrules')
FIRST_LOOP = 16


def kinds(scsi_free):
    """Returns the kinds of disks that this machine can make."""
    found = ['null', 'null', 'zoned', 'loop', 'file']
    if shutil.which('dmsetup'):
        found += ['linear', 'striped', 'flakey']
    if shutil.which('mdadm') and os.path.exists('/proc/mdstat'):
        found += ['raid0']
    if scsi_free and os.path.isdir(SCSI):
        found += ['scsi']
    return found


def file_systems():
    """Returns the file systems for which the kernel and the machine have all that is needed."""
    known = read('/proc/filesystems').split()
    return [fs for fs in ('ext4', 'xfs', 'btrfs') if fs in known and shutil.which(f'mkfs.{fs}')]


class Disk:
    """One disk of a round, with all disks below it; nodes: the names of its block devices, the lowest first."""
    made = 0                # numbers are used once, so that no disk is taken for an earlier one

    def __init__(self, world, rng):
        Disk.made += 1
        self.number, self.rng, self.virtual, self.folder = Disk.made, rng, world.virtual, world.folder
        self.undo, self.note = contextlib.ExitStack(), world.note
        self.nodes, self.nulls = [], []
        self.mnt = self.dm_name = self.scsi = self.fs = None
        self.table = ''         # of the dm device
        self.gone = self.broken = self.faulty = self.zoned = self.cached = False
        self.zone_bytes = 4 * MIB
        self.block = 512        # the largest block size of the disks below, bytes
        self.kind = rng.choice(kinds(not any(disk.scsi for disk in world.disks)))
        try:
            getattr(self, 'make_' + self.kind)()
            self.top = self.nodes[-1]
            self.size = int(read(f'/sys/block/{self.top}/size')) * 512
            self.slot = min(SLOT, self.size // (SLOTS + 1) // MIB * MIB)
            systems = file_systems()
            if self.kind not in ('zoned', 'scsi') and systems and rng.random() < 0.4:
                self.make_fs(rng.choice(systems))
        except BaseException:
            self.undo.close()
            raise

    def __str__(self):
        return self.kind + (f'+{self.fs}' if self.fs else '')

    def node(self):
        """Returns the path of the node for I/O."""
        return f'/dev/{self.top}'

    def dev(self, name=None):
        """Returns the number of one of its devices, 'M:m'; of the top one by default."""
        return read(f'/sys/block/{name or self.top}/dev').strip()

    def null(self, size=SIZE_MIB, **more):
        """Makes a null_blk disk with memory behind it and random properties."""
        rng, name = self.rng, f'tq{self.number}n{len(self.nulls)}'
        block = rng.choice((512, 512, 4096))
        keys = {
            'size': size, 'memory_backed': 1, 'irqmode': rng.choice((0, 1, 2, 2, 2, 2)),
            'completion_nsec': int(10 ** rng.uniform(4, 8 if self.virtual else 6.5)),
            'hw_queue_depth': rng.choice((1, 2, 4, 16, 64, 128)), 'submit_queues': rng.choice((1, 1, 2)),
            'blocksize': block, 'discard': rng.choice((0, 1, 1)), 'rotational': rng.choice((0, 1)),
            'max_sectors': rng.choice((None, None, 8, 64, 512)), 'fua': rng.choice((0, 1)),
            'cache_size': rng.choice((None,) * 8 + (1, 8)), 'mbps': rng.choice((None,) * 9 + (200,)),
            'no_sched': rng.choice((0,) * 8 + (1,)), 'shared_tag_bitmap': rng.choice((0,) * 8 + (1,)),
            'virt_boundary': rng.choice((0,) * 8 + (1,)), 'badblocks_once': rng.choice((0, 0, 1)),
        } | more
        if not self.virtual:    # on two CPUs null_blk can search for room in its cache for ever
            keys['cache_size'] = None
        if keys['mbps']:        # null_blk dispatches no I/O that takes longer than 20 ms at this rate
            keys['discard'] = 0
        self.note(f'{name}: ' + ' '.join(f'{key}={value}' for key, value in keys.items() if value is not None))
        folder = f'{NULLB}/{name}'
        os.mkdir(folder)
        self.undo.callback(os.rmdir, folder)
        for key, value in keys.items():
            if value is not None and os.path.exists(f'{folder}/{key}'):
                write(f'{folder}/{key}', value)
        write(f'{folder}/power', 1)
        self.undo.callback(write, f'{folder}/power', 0)
        self.block = max(self.block, block)
        self.cached |= bool(keys['cache_size'])
        self.nulls.append(name)
        self.nodes.append(name)
        return name

    def make_null(self):
        """Makes a null_blk disk."""
        self.null()

    def make_zoned(self):
        """Makes a host-managed zoned disk; some zones may be conventional, which ZoneLoad can use as well."""
        self.zoned = True
        self.null(ZONED_MIB, zoned=1, zone_size=4, zone_nr_conv=self.rng.choice((0, 0, 2)), cache_size=None,
                  zone_max_open=self.rng.choice((0, 8)), virt_boundary=0)

    def make_loop(self):
        """Makes a loop device over a disk, with or without direct I/O."""
        self.loop_over(f'/dev/{self.null()}')

    def make_file(self):
        """Makes a loop device over a file in memory."""
        path = f'{self.folder}/loop{self.number}'
        with open(path, 'wb') as file:
            file.truncate(SIZE_MIB * MIB)
        self.undo.callback(os.unlink, path)
        self.loop_over(path)

    def loop_over(self, path):
        """Makes the loop device over a file or a node."""
        node = loop(self.undo, FIRST_LOOP + self.number)
        run('losetup', f'--direct-io={self.rng.choice(("on", "off"))}', node, path)
        self.undo.callback(run, 'losetup', '-d', node)
        self.nodes.append(os.path.basename(node))

    def make_dm(self, table):
        """Makes the dm device with a table, which may be replaced later."""
        if not os.path.exists('/dev/mapper/control'):
            run('dmsetup', '--noudevsync', 'mknodes')
        self.dm_name, self.table = f'tq{self.number}', table
        run(*DM, 'create', self.dm_name, '--table', table)
        self.undo.callback(run, *DM, 'remove', '--retry', self.dm_name)
        self.nodes.append('dm-' + run('dmsetup', 'info', '-c', '--noheadings', '-o', 'minor', self.dm_name))

    def make_linear(self):
        """Makes a linear dm device over all of a disk."""
        name = self.null()
        self.make_dm(f'0 {read(f"/sys/block/{name}/size").strip()} linear /dev/{name} 0')

    make_flakey = make_linear

    def make_striped(self):
        """Makes a striped dm device over two disks."""
        one, two = self.null(SIZE_MIB // 2), self.null(SIZE_MIB // 2)
        half = int(read(f'/sys/block/{one}/size'))
        self.make_dm(f'0 {half * 2} striped 2 {self.rng.choice((8, 128))} /dev/{one} 0 /dev/{two} 0')

    def make_raid0(self):
        """Makes a RAID0 of md over two disks."""
        node = f'/dev/md{self.number}'
        members = [f'/dev/{self.null(SIZE_MIB // 2, virt_boundary=0)}' for _ in range(2)]
        env = dict(os.environ, MDADM_NO_UDEV='1')
        subprocess.run(['mdadm', '--create', node, '--run', '--assume-clean', '--quiet', '--metadata=1.2', '--chunk=64',
                        '--level=raid0', '--raid-devices=2', *members], env=env, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.undo.callback(run, 'env', 'MDADM_NO_UDEV=1', 'mdadm', '--quiet', '--stop', node)
        self.nodes.append(os.path.basename(node))

    def make_scsi(self):
        """Makes a disk of scsi_debug, whose disks share one store of 8 MiB."""
        for key, value in (('fake_rw', 0), ('virtual_gb', 0), ('every_nth', 0), ('opts', 0), ('random', 1),
                           ('ndelay', int(10 ** self.rng.uniform(4, 8)))):
            write(f'{SCSI}/{key}', value)
        before = set(os.listdir('/sys/block'))
        write(f'{SCSI}/add_host', 1)
        self.undo.callback(write, f'{SCSI}/add_host', -1)
        for name in wait_new(before):
            self.nodes.append(name)
        self.scsi = self.nodes[0]

    def make_fs(self, fs):
        """Makes a file system on all of the disk."""
        self.mnt = f'{self.folder}/mnt{self.number}'
        os.mkdir(self.mnt)
        self.undo.callback(os.rmdir, self.mnt)
        mount(self.node(), self.mnt, fs, self.undo)
        self.fs = fs

    def reload(self, table=None, nap=0):
        """Returns shell commands that replace its table, if one is given, and sleep for nap s while it is suspended."""
        dm, how = ' '.join(DM), self.rng.choice(('', '--noflush', '--nolockfs'))
        load = f'{dm} load {self.dm_name} --table "{table}"; ' if table else ''
        return f'{load}{dm} suspend {how} {self.dm_name} && sleep {nap:.3f}; {dm} resume {self.dm_name}; '

    def flakey(self):
        """Returns shell commands that make it fail for a while: at times, by dm-flakey, or always, by an error target."""
        length, rng = self.table.split()[1], self.rng
        self.faulty = True
        if 'flakey' in run('dmsetup', 'targets'):
            table, nap = self.table.replace('linear', 'flakey') + f' {rng.randint(1, 10)} {rng.randint(1, 3)}', rng.uniform(1, 60)
        else:
            table, nap = f'0 {length} error', rng.uniform(0, 5)
        return self.reload(table) + f'sleep {nap if self.virtual else nap / 10:.3f}; ' + self.reload(self.table)

    def heal(self):
        """Ends all faults but those of dm, which end by themselves."""
        for name in self.nulls:
            folder = f'{NULLB}/{name}'
            for kind in ('timeout_inject', 'requeue_inject'):
                if os.path.isdir(f'{folder}/{kind}'):
                    write(f'{folder}/{kind}/probability', 0)
            if self.faulty:
                with contextlib.suppress(OSError):      # there may be none
                    write(f'{folder}/badblocks', f'-0-{SIZE_MIB * MIB // 512 - 1}')
        if self.scsi:
            write(f'{SCSI}/every_nth', 0)
            write(f'{SCSI}/opts', 0)

    def pull(self):
        """Returns shell commands that remove a part of it, if possible; the kernel syncs the file system first."""
        if not self.nulls and not self.scsi:
            return None
        self.gone = self.faulty = True
        if self.scsi:
            return f'echo 1 >/sys/block/{self.scsi}/device/delete'
        return f'echo 0 >{NULLB}/{self.rng.choice(self.nulls)}/power'

    def held(self):
        """Returns (bios that its devices hold for limits, bios that wait for their share or are in flight)."""
        waiting = shared = 0
        for name in self.nodes:
            folder = f'{DEBUG_BLOCK}/{name}/ioband'
            with contextlib.suppress(FileNotFoundError):
                waiting += sum(int(word[5:]) for word in read(f'{folder}/groups').split() if word.startswith('held='))
                words = dict(word.split('=') for word in read(f'{folder}/share').splitlines()[0].split() if '=' in word)
                shared += int(words['outstanding']) + int(words['passed'])
        return waiting, shared

    def close(self):
        """Removes the disk, from the top on."""
        self.undo.close()


def wait_new(before):
    """Waits for a new block device; returns its name."""
    for _ in range(100):
        new = sorted(set(os.listdir('/sys/block')) - before)
        if new and os.path.exists(f'/dev/{new[0]}'):
            return new[:1]
        time.sleep(0.1)
    raise WorldError('scsi_debug has no disk')
