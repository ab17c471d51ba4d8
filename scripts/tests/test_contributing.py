# SPDX-License-Identifier: GPL-2.0
"""Tests of what documents name: files and tests exist, and the tables of CONTRIBUTING.md name every source of ioband."""
import fnmatch
import glob
import os
import re
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# the folders in which names without a folder are searched
FOLDERS = ("", "block/ioband", "kernel/cgroup", "tools/cgroup", "tools/testing/selftests/blkio")
# names of the kernel that look like those of tests
SYSCTLS = {"dirty_ratio", "dirty_bytes"}


def named():
    """Returns the files and folders that the tables of "Where things are" name, as they are written there."""
    with open(os.path.join(TOP, "CONTRIBUTING.md"), encoding="utf-8") as file:
        part = file.read().split("## Where things are")[1].split("\n## ")[0]
    return [name for line in part.splitlines() if line.startswith("|")
            for name in re.findall(r"`([\w./*-]+)`", line) if "." in name or "/" in name]


def stems():
    """Returns the names of all files of the project's sources, without folder and ending."""
    return {name.split(".")[0] for top in ("block", "kernel", "include", "tools") for _, _, names in os.walk(os.path.join(TOP, top))
            for name in names}


def documents():
    """Returns the paths of all documents."""
    return [path for pattern in ("*.md", "docs/*.md", "patches/*.rst", "patches/cover-letter-*", "Documentation/**/*.rst")
            for path in glob.glob(os.path.join(TOP, pattern), recursive=True)]


def places(name):
    """Returns the paths in the repository that a name stands for."""
    found = []
    for folder in FOLDERS:
        directory, pattern = os.path.split(os.path.join(TOP, folder, name).rstrip("/"))
        if os.path.isdir(directory):
            found += [os.path.relpath(os.path.join(directory, file), TOP)
                      for file in fnmatch.filter(os.listdir(directory), pattern)]
    return found


class TestContributing(unittest.TestCase):
    def test_names_exist(self):
        """Each file and folder that is named exists."""
        known = {"io.stat", "io.ioband", "block/ioband/Kconfig"}    # control files, and a file of the kernel
        self.assertEqual([name for name in named() if name not in known and not places(name)], [])

    def test_tests_exist(self):
        """Each word in a document that begins like the name of a test is the name of a test or of another file."""
        known = stems() | SYSCTLS
        for path in documents():
            with open(path, encoding="utf-8") as file:
                words = re.findall(r"\b(?:abi|limit|weight|dirty|stress|tool)_[a-z0-9_]*[a-z0-9]\b(?!\()", file.read())
            self.assertEqual([word for word in words if word not in known], [], path)

    def test_sources_are_named(self):
        """Each source file in block/ioband and kernel/cgroup is named."""
        known = {path for name in named() for path in places(name)}
        files = [os.path.relpath(os.path.join(folder, file), TOP) for top in ("block/ioband", "kernel/cgroup")
                 for folder, _, names in os.walk(os.path.join(TOP, top)) if not folder.endswith("/tests")
                 for file in names if file.endswith((".c", ".h"))]
        self.assertEqual([path for path in sorted(files) if path not in known], [])


if __name__ == "__main__":
    unittest.main()
