#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C file with what the papers' machine brings along: objects of firmware and their line tables, machines, and
the table of published figures.
    sim/myrinet/embed.py OUT.c FILE ...
data.h finds each by a name: NAME.hex and NAME.lines for the two parts of each object in objects.hex, an empty line between them;
machines/NAME.machine for each of machines.txt; kit/STEP/FILE for examples/paper/STEP/FILE; else the file's path below
sim/myrinet/, or below the tree's top where it is not there."""
import os
import re
import sys


def literal(data):
    rows = []
    for i in range(0, len(data), 20):
        rows.append("    " + ", ".join("%d" % b for b in data[i:i + 20]) + ",")
    return "\n".join(rows)


def main():
    base = os.path.dirname(os.path.abspath(__file__))
    out = ['#include "sim/myrinet/data.h"', ""]
    table = []
    for path in sorted(sys.argv[2:]):
        with open(path, "rb") as f:
            data = f.read()
        name = os.path.relpath(os.path.abspath(path), base)
        if name.startswith("../../examples/paper/"):
            name = "kit/" + name[len("../../examples/paper/"):]
        elif name.startswith("../../"):
            name = name[len("../../"):]
        parts = [(name, data)]
        if name.endswith("objects.hex"):
            parts = []
            for which, code, lines in re.findall(r"^object (.*)\n([0-9a-f\n]*)\n\n([^\n]+(?:\n[^\n]+)*\n)", data.decode(), re.M):
                which = os.path.join(os.path.dirname(name), which)
                parts += [(which + ".hex", bytes.fromhex(code)), (which + ".lines", lines.encode())]
        elif name == "machines.txt":
            parts = [("machines/%s.machine" % m[1], m[0].encode())
                     for m in re.finditer(r"^machine (.*)\n(?:[^\n]+\n|\n(?!machine ))*", data.decode(), re.M)]
        for part, content in parts:
            out.append("static const unsigned char file_%d[] = {\n%s\n    0};" % (len(table), literal(content)))
            table.append('    {"%s", file_%d, %d},' % (part, len(table), len(content)))
    out += ["const struct myri_data myri_data_table[] = {"] + table + ["    {0, 0, 0}};", ""]
    with open(sys.argv[1], "w") as f:
        f.write("\n".join(out))


main()
