#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C file with what the papers' machine brings along: objects of firmware (from their .hex), line tables,
machines, and the table of published figures.
    sim/paper/embed.py OUT.c FILE ...
A name is the file's path below sim/paper/; data.h finds it."""
import os
import sys


def literal(data):
    rows = []
    for i in range(0, len(data), 20):
        rows.append("    " + ", ".join("%d" % b for b in data[i:i + 20]) + ",")
    return "\n".join(rows)


def main():
    base = os.path.dirname(os.path.abspath(__file__))
    out = ['#include "sim/paper/data.h"', ""]
    table = []
    for k, path in enumerate(sorted(sys.argv[2:])):
        with open(path, "rb") as f:
            data = f.read()
        name = os.path.relpath(os.path.abspath(path), base)
        if name.endswith(".hex"):
            data = bytes.fromhex(data.decode())
        out.append("static const unsigned char file_%d[] = {\n%s\n    0};" % (k, literal(data)))
        table.append('    {"%s", file_%d, %d},' % (name, k, len(data)))
    out += ["const struct rnl_data rnl_data_table[] = {"] + table + ["    {0, 0, 0}};", ""]
    with open(sys.argv[1], "w") as f:
        f.write("\n".join(out))


main()
