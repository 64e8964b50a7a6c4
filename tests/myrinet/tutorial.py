#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does what runnel-paper-tutorial(7) says, line by line, in the folder that it is called in: a line with a dollar is
run, and what stands below it has to be what it prints, where dots are lines left out; a block that begins with the name
of a file is to be found in it, and one that says above which line of a file it goes is put there.
    tests/myrinet/tutorial.py PAGE"""
import re
import subprocess
import sys

wrong = 0


def verdict(name, complaint):
    global wrong
    print("%s - %s" % ("not ok" if complaint else "ok", name))
    for line in complaint or []:
        print("# " + line)
    wrong += bool(complaint)


def differs(expected, printed):
    """Both in order; dots are any number of lines, also none, and at the end of a line the rest of it. How wide a column
    is says nothing."""
    def is_it(line, there):
        line, there = " ".join(line.split()), " ".join(there.split())
        return there.startswith(line[:-3]) if line.endswith("...") else there == line

    at, may_skip = 0, False
    for line in expected:
        if line == "...":
            may_skip = True
            continue
        last = len(printed) if may_skip else min(at + 1, len(printed))
        found = next((i for i in range(at, last) if is_it(line, printed[i])), None)
        if found is None:
            return ["the page has: " + line] + ["printed: " + p for p in printed[at:at + 60]]
        at, may_skip = found + 1, False
    return None if may_skip or at == len(printed) else ["the page has not: " + printed[at]]


def run(command, expected):
    p = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       universal_newlines=True, timeout=300, check=False)
    printed = p.stdout.rstrip("\n").split("\n") if p.stdout else []
    verdict(command, ["status %d" % p.returncode] + printed if p.returncode else differs(expected, printed))


def add(path, line, text):
    with open(path, encoding="utf-8") as f:
        parts = f.read().split("\n" + line)
    if len(parts) == 2:
        with open(path, "w", encoding="utf-8") as f:
            f.write(parts[0] + "\n" + text + line + parts[1])
    verdict("%s has one line: %s" % (path, line.strip()), None if len(parts) == 2 else ["%d" % (len(parts) - 1)])


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        page = f.read()
    commands = 0
    for block in page.split("```\n")[1::2]:
        lines = block.replace("\\\\", "\\").rstrip("\n").split("\n")
        added = re.fullmatch(r"/\* to (\S+/\S+), above: (.*) \*/", lines[0])
        if added:
            add(added.group(1), added.group(2) + "\n", "\n".join(lines[1:]) + "\n")
            continue
        named = re.fullmatch(r"/\* (\S+/\S+) \*/", lines[0])
        if named:
            with open(named.group(1), encoding="utf-8") as f:
                there = "\n".join(lines[1:]) + "\n" in f.read()
            verdict("%s has: %s" % (named.group(1), lines[1].strip()), None if there else ["it has not"])
            continue
        for part in re.split(r"^\$ ", "\n".join(lines), flags=re.M)[1:]:
            command, *expected = part.rstrip("\n").split("\n")
            run(command, expected)
            commands += 1
    verdict("the tutorial has commands", None if commands > 20 else ["%d" % commands])
    return 1 if wrong else 0


sys.exit(main())
