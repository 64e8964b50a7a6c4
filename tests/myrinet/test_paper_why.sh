#!/usr/bin/env bash
# runnel paper why: one published figure, where its time goes, what would have it inside, what was tried.
# shellcheck disable=SC2016,SC2154 # programs for bash -c; variables of checks.sh
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cat >"$work/said.py" <<'END'
import csv, json, re, sys
source = sys.argv[2]
text = {}
def why(row):
    if row not in text:
        text[row] = open("%s/why.%s" % (sys.argv[1], row)).read()
    return text[row]
table = {r["row"]: r for r in json.load(open(source + "/doc/results/table.json"))}
rows = {r["id"]: r for r in csv.DictReader(open(source + "/sim/myrinet/rows.csv"))}
history = {r["row"]: (r["first"], list(map(int, r["log"].split())))
           for r in csv.DictReader(open(source + "/doc/results/history.csv"))}
log = {int(m[1]): m[0] for m in re.finditer(r"^(\d+)\. .*\n(?:   +\S.*\n)*", open(source + "/doc/results/log.md").read(), re.M)}
def stages(row): # (us, at, where, what)
    return [(float(m[1]), m[2], m[3], m[4]) for m in re.finditer(
        r"^ +([\d.]+) +[\d.]+%  (sender|receiver) +(host|bus|card|DMA|wire|wait)(?: +(.+))?$", why(row), re.M)]
END
said() { # NAME ROWS, a program of Python on standard input: what why says of them
    local name=$1 row
    for row in $2; do
        [ -f "$work/why.$row" ] || "$RUNNEL" paper why "$row" >"$work/why.$row" 2>"$work/err.$row"
    done
    { cat "$work/said.py" && cat; } >"$work/program.py"
    check "$name" python3 "$work/program.py" "$work" "$RUNNEL_SOURCE"
}

said "stages of a latency, a round trip, a cost and a fetch add up to ours, as they are printed" "53a 38a 27a 41" <<'END'
for row in "53a 38a 27a 41".split():
    parts = stages(row)
    whole, kinds = re.search(r"^ +([\d.]+) in all: (.*) us$", why(row), re.M).groups()
    assert round(1000 * sum(p[0] for p in parts)) == round(1000 * float(whole)), (row, parts, whole)
    assert abs(float(whole) - table[row]["ours"]) < 0.0006, (row, whole, table[row])
    for kind, us in (k.split() for k in kinds.split(", ")):
        assert abs(sum(p[0] for p in parts if p[2] == kind) - float(us)) < 0.02, (row, kind, us)
    assert re.search(r"^ours: %.4g us .*, %s$" % (table[row]["ours"], "inside" if table[row]["inside"] else "MISS"),
                     why(row), re.M), row
END
said "a message's stages are in the order of its way: its sender's before the wire, its receiver's behind it" "53a" <<'END'
order = [(at, where) for _, at, where, what in stages("53a")]
wire = order.index(("sender", "wire"))
assert all(at == "sender" for at, _ in order[:wire]) and all(at == "receiver" for at, _ in order[wire + 1:]), order
names = [what for *_, what in stages("53a")]
assert names.index("start send") < names.index("a packet leaves") < names.index("receive") < names.index("start host DMA"), names
assert names.index("start host DMA") < names.index("set-up") < names.index("to host") < names.index("copy"), names
END
said "a cost is its host's alone" "27a" <<'END'
assert {(at, where) for _, at, where, _ in stages("27a")} == {("sender", "host"), ("sender", "bus")}, stages("27a")
END
said "of a rate each part's time, which is busiest, and of what that is made" "53c 52b" <<'END'
for row in ("53c", "52b"):
    each = float(re.search(r"each ([\d.]+) us behind", why(row))[1])
    parts = {(m[2], m[3]): float(m[1]) for m in re.finditer(r"^ +([\d.]+) +[\d.]+%  (sender|receiver) +(\w+)$", why(row), re.M)}
    at, where, share = re.search(r"^The busiest is the (\w+)'s (\w+), (\d+) % of the time", why(row), re.M).groups()
    assert len(parts) > 5 and parts[at, where] == max(parts.values()), (row, parts)
    assert max(parts.values()) <= each * 1.001 and abs(100 * parts[at, where] / each - float(share)) < 0.6, (row, parts)
    of = re.search(r"^The busiest.*\n((?: +[\d.]+ +[\d.]+%  .*\n)+)", why(row), re.M)[1]
    assert abs(sum(float(l.split()[0]) for l in of.splitlines()) - parts[at, where]) < 0.01, (row, of)
assert "bytes: 55.42 MB/s" in why("53c") and "256 bytes: 33.82 MB/s" in why("52b")
END
said "a figure of several experiments lists them" "42a 40d" <<'END'
points = re.findall(r"^ +\d  (\S+) +H-A +round-trip +16 bytes +([\d.]+) us$", why("40d"), re.M)
assert [s for s, _ in points] == ["fmmc", "fmmc-no-objects"], points
assert abs(float(points[0][1]) - float(points[1][1]) - table["40d"]["ours"]) < 0.11, points
assert "It is made of 2 experiments" in why("40d") and "It is made of" not in why("42a")
END
"$RUNNEL" paper why 40d --run 2 >"$work/why.run"
said "one of them is asked for by its number, and is all that is said then" "40d" <<'END'
run = open(sys.argv[1] + "/why.run").read()
second = float(re.findall(r"^ +2  fmmc-no-objects .* ([\d.]+) us$", why("40d"), re.M)[0])
assert abs(float(re.search(r"^ +([\d.]+) in all:", run, re.M)[1]) - second) < 0.06, (run, second)
assert "no-objects" not in why("40d")[why("40d").index("Where the time"):] and "What " not in run and "It is made of" not in run, run
END
is_usage "there are so many" "row 40d is made of 2 experiments: --run takes 1 to 2" paper why 40d --run 3
is_usage "and of no experiment none" "row 29 has no experiment, so --run has nothing to show" paper why 29 --run 1
said "a shape is true or false with both firmwares" "27b" <<'END'
assert "\nours: true, inside\nwith the firmware that was written for speed alone: true, inside\n" in why("27b"), why("27b")[:600]
END
"$RUNNEL" paper fit ni_instruction --bounds --json >"$work/bounds.json"
said "what it would take is what fit --bounds says, and given values are named so" "53c 53a 38a 34" <<'END'
bounds = {r["row"]: r for r in json.load(open(sys.argv[1] + "/bounds.json"))}
for row in ("38a", "34"):
    bar = "".join(".#"[v] for v in bounds[row]["inside"].values())
    line = re.search(r"^  ni_instruction +fitted +4.05 cycles +\|(.*)\|(.*)$", why(row), re.M)
    assert line[1] == bar and ("none has it inside" in line[2]) == ("#" not in bar), (row, line[0], bar)
for row in ("53c", "53a", "38a"):
    assert re.search(r"^  (link_rate|ni_clock) +given ", why(row), re.M), row
    tried = {l.split()[0] for l in why(row).split("\n") if re.search(r" \|[#. ]{9}\|", l)}
    idle = int(re.search(r"^  (\d+) of \d+ values change nothing", why(row), re.M)[1])
    lines = open(source + "/sim/myrinet/machines.txt").read().split("\nmachine ")
    mine, = [m for m in lines if m.startswith(rows[row]["machine"] + "\n")]
    machine = {f[0] for f in map(str.split, mine.split("\n")) if len(f) > 4 and f[0] != "about" and f[0] != "#" and float(f[1]) > 0}
    assert tried < machine and len(tried) + idle == len(machine), (row, len(tried), idle, machine - tried)
assert "inside at times 0.25 to 0.7 (0.4375 to 1.225)" in why("53c") and "no value alone" in why("53a")
assert "no value alone" not in why("53c") and "How far it stays inside" in why("38a")
END
said "a truth that a value leaves as it is may be made of figures that it moves" "33" <<'END'
assert re.search(r"^  \d+ of \d+ values leave it false, a quarter and four times of each$", why("33"), re.M), why("33")
END
said "what was tried are the entries of the log that name it, each once and whole" "53a 53c 27a" <<'END'
for row in ("53a", "53c", "27a"):
    behind = why(row)[why(row).index("\nWhat was changed or tried"):]
    entries = history[row][1]
    assert entries and behind.split("\n", 2)[2] == "".join(log[n] for n in entries), row
END
said "the first comparison, where it was written down" "53a 32c 78" <<'END'
assert "\nfirst comparison: 8.665 us, +116.6 %, MISS\n" in why("53a")
assert "\nfirst comparison: its figure was not written down\n" in why("32c")
assert "\nfirst comparison: 2.3 us, inside\n" in why("78")
survey = [r for r in history if "71a" <= r <= "79b"] # log.md, 55 and 58
assert len(survey) == 19 and all(history[r][0] for r in survey), survey
def inside(r):
    first, v = history[r][0], rows[r]["value"]
    if not first[:1].isdigit():
        return first == "true"
    if v[0] in "<>":
        return float(first) < float(v.strip("<>=")) if v[0] == "<" else float(first) > float(v.strip("<>="))
    return abs(float(first) / float(v) - 1) <= (0.15 if rows[r]["unit"] == "us" else 0.10)
held = [r for r in history if rows[r]["class"] == "held"]
assert len(held) == 23 and sum(map(inside, held)) == 9, [r for r in held if inside(r)] # log.md, 1
END
said "a row without an experiment says what is missing" "29" <<'END'
assert "\nours: none; other hardware" in why("29") and "Where the time" not in why("29"), why("29")
END
check "the list of entries is the one that the log says" "$RUNNEL_SOURCE/sim/myrinet/log-rows" --check
said "both ways: an entry that has a row's name is listed, and one that is listed has it" "" <<'END'
assert set(history) <= set(rows), set(history) - set(rows)
seen = 0
for n, entry in log.items():
    for row in set(re.findall(r"(?<![\w.])\(?(\d+[a-z])(?!\w)", entry)) & set(rows):
        assert n in history.get(row, ("", ()))[1], (n, row)
        seen += 1
for row, (_, entries) in history.items():
    for n in entries:
        number, letter = re.match(r"(\d+)(\w*)", row).groups()
        assert re.search(r"(?<![\w.])%s%s(?!\w)" % (number, "[a-z]" if letter else ""), log[n]), (row, n)
assert seen > 150, seen
END
is_usage "a row that is not there: near it are those of its number" "no row '53'; near it: 53a 53b 53c (" paper why 53
is_usage "or of that system" "no row 'bip'; near it: 53a 53b 53c (" paper why bip
is_usage "a system of one's own is no row" "paper trace, diff and profile show" paper why mine
is_usage "no row at all" "name a row" paper why
is_usage "what would have no effect" "no effect on why" paper why 53a --count 3
exit "$failed"
