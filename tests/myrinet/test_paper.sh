#!/usr/bin/env bash
# runnel paper: the table and its fitted values, runs with losses, and every figure.
# shellcheck disable=SC2016,SC2154 # programs for bash -c; variables of checks.sh
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

check "fitted values are found again, from rows of class fit" paper fit
check "the table is JSON with a figure or a truth for each row that has an experiment" bash -c '
    "$0" paper table all --json >"$1" && python3 - "$1" "$2" <<END
import csv, json, sys
rows = {r["row"]: r for r in json.load(open(sys.argv[1]))}
want = {r["id"] for r in csv.DictReader(open(sys.argv[2])) if r["class"] in ("held", "fit")}
assert want <= set(rows), want - set(rows)
assert all(isinstance(r["ours"], (bool, int, float)) for r in rows.values())
assert all((r["class"] != "held") or r["row"] in want for r in rows.values())
END' "$RUNNEL" "$work/table.json" "$RUNNEL_SOURCE/sim/myrinet/rows.csv"
"$RUNNEL" paper table all >"$work/table"
check "held rows are closer than both null models are, on latencies and on rates" python3 - "$work/table.json" "$work/table" <<'END'
import json, re, sys
held = [r for r in json.load(open(sys.argv[1])) if r["class"] == "held" and "null" in r and r["published"][0].isdigit()]
said = open(sys.argv[2]).read()
for unit, name, least in (("us", "latencies", 8), ("MB/s", "rates", 9)):
    of = [r for r in held if r["unit"] == unit]
    ours, null, affine = ([abs(r[k] / float(r["published"]) - 1) for r in of] for k in ("ours", "null", "affine"))
    assert len(of) >= least and sum(ours) < sum(null) and sum(ours) < sum(affine), (name, ours, affine)
    line = re.search("^%s +of +(\\d+) rows: ours +([\\d.]+) %%, null +([\\d.]+) %%, affine +([\\d.]+) %%; .* on (\\d+): CLOSER"
                     % name, said, re.M)
    assert line and int(line[1]) == len(of) and int(line[5]) == sum(a < b for a, b in zip(ours, affine)), (name, line and line[0])
    for miss, printed in zip((ours, null, affine), line.groups()[1:4]):
        assert abs(100 * sum(miss) / len(of) - float(printed)) < 0.06, (name, line[0])
END
check "below the table: the first comparison and now, the classes of values, and the order of one-word latencies" \
    python3 - "$work/table.json" "$work/table" "$RUNNEL_SOURCE/sim/myrinet/machines.txt" <<'END'
import json, re, sys
rows = {r["row"]: r for r in json.load(open(sys.argv[1]))}
said = open(sys.argv[2]).read()
inside = sum(r["inside"] for r in rows.values() if r["class"] == "held")
assert "first comparison 9 of 23, and now %d, of which 4 with the row in sight (27c 31a 38b 38c)\n" % inside in said, inside
values = {(f[0], float(f[1]), f[3]) for f in map(str.split, open(sys.argv[3])) if len(f) > 4 and f[3] in (
    "fitted", "derived", "assumed", "given")}
n = {c: sum(v[2] == c for v in values) for c in ("fitted", "derived", "assumed", "given")}
assert "%d fitted, %d derived, %d assumed, %d given" % tuple(n.values()) in said, n
ours = re.search("; ours: (.*) us$", said, re.M)[1].split(" < ")
assert [float(x.split()[1]) for x in ours] == sorted(float(x.split()[1]) for x in ours) and len(ours) == 5
published = "bip pm vmmc fm2 simple".split()
assert rows["33"]["ours"] == ([x.split()[0] for x in ours] == published)
END
"$RUNNEL" paper fit --json >"$work/fit.json"
check "values are called fitted that the fit finds, assumed that no paper gives, and H-A2 has another card than H-A, no more" \
    python3 - "$work/fit.json" "$RUNNEL_SOURCE/sim/myrinet/machines.txt" <<'END'
import json, sys
machines = {part.split("\n")[0]: {f[0]: f[1:4:2] for f in map(str.split, part.split("\n")) if len(f) > 4 and f[0] not in ("#", "about")}
            for part in open(sys.argv[2]).read().split("\nmachine ")[1:]}
fitted = {(f["value"], m) for f in json.load(open(sys.argv[1])) for m in f["machines"].split()}
called = {(v, m) for m, values in machines.items() for v, (_, c) in values.items() if c == "fitted"}
assert called == fitted, (called - fitted, fitted - called)
assert {v for v, is_ in machines["H-A"].items() if is_ != machines["H-A2"][v]} == {"ni_instruction"}
assert machines["H-A2"]["ni_instruction"] == ["1", "given"]
assert machines["H-S"]["store_bytes"] == ["8", "assumed"] and all(m["look_pause"] == ["5", "assumed"] for m in machines.values())
END
check "plain firmware keeps the rule of style: one loop of a card, its state without arrays, no quotient but by a power of two or a constant, nothing tuned" \
    python3 - "$RUNNEL_SOURCE/sim/myrinet" <<'END'
import glob, os, re, sys
def with_headers(path, seen):
    if path in seen:
        return ""
    seen.add(path)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", open(path).read(), flags=re.S)
    own = re.findall(r'#include "sim/myrinet/(systems/[^"]*)"', text)
    return text + "".join(with_headers(sys.argv[1] + "/" + h, seen) for h in own)
plain = [f for f in glob.glob(sys.argv[1] + "/systems/*/firmware*.c") if "tuned" not in os.path.basename(f) and "/probe/" not in f]
for f in plain:
    seen = set()
    text = with_headers(f, seen)
    assert not any("tuned" in os.path.basename(h) for h in seen), f
    loop, = re.findall(r"^LOOP_OF_CARD\(struct (\w+)\)", text, re.M)
    state = re.search(r"^struct %s \{(.*?)^\}" % loop, text, re.M | re.S)
    assert state and "[" not in state[1], (f, loop)
    code = re.sub(r'^ *#.*(?:\\\n.*)*|"[^"]*"', "", text, flags=re.M)
    sums = [l.strip() for l in code.split("\n") if re.search(r"[\w)\]] [/%] (?!(2|4|8|16|32|64|128|256|512|1024|[A-Z][A-Z_\d]+)\b)[\w(]", l)]
    assert not sums, (f, sums)
assert len(plain) >= 18, plain
END
check "it is the one that was committed, to the bit" cmp "$work/table.json" "$RUNNEL_SOURCE/doc/results/table.json"
check "a figure has its curves" bash -c '"$0" paper figure survey-2 | grep -q "DMA after a copy"' "$RUNNEL"
check "figure 3a: what is added takes, and flow control takes less than the bus" bash -c '
    "$0" paper figure fm-3a --count 100 | awk "/^ +[0-9]/ {
            n++; bad += !(\$2 >= \$3 && \$3 >= \$4 && \$3 - \$4 < 0.2); saved += \$2 - \$3 }
        END { exit !(n == 9 && !bad && saved > 1) }"' "$RUNNEL"
check "MPI loses less on FM 2.x than on FM 1.1, at the sizes where both have copies to save" bash -c '
    one=$("$0" paper run mpi-fm1 --size 2048 --measure stream-rate --count 60 --json) &&
    two=$("$0" paper run mpi-fm2 --size 2048 --measure stream-rate --count 60 --json) &&
    grep -q "\"received\":60,\"wrong\":0" <<<"$one" && grep -q "\"received\":60,\"wrong\":0" <<<"$two" &&
    "$0" paper figure fm-4b --count 60 | awk "\$1 == 2048 { exit !(\$2 < 85) }" &&
    "$0" paper figure fm-6b --count 60 | awk "\$1 == 2048 { exit !(\$2 > 90) }"' "$RUNNEL"
refuses "FM: a stream that misses a message has failed" "so [1-9][0-9]* of 300 messages" \
    "$RUNNEL" paper run fm1 --measure stream-rate --count 300 --bad 0.01
check "the simple protocol: a stream with losses is one" bash -c '
    "$0" paper run simple --measure stream-rate --bad 0.01 --count 300 | grep -q "29[0-9] received, 0 wrong"' "$RUNNEL"
refuses "a pool that FM 1.1 fills" "pool of 1024 messages is full" \
    "$RUNNEL" paper run mpi-fm1 --size 2048 --measure stream-rate --count 1200 --set copy_rate=5
check "a sweep" bash -c '
    "$0" paper sweep bip --over ni_clock=33,66 --count 20 | grep -c "^ *[36]" | grep -qx 2' "$RUNNEL"
# All of them, and their pictures where there is gnuplot.
plot=()
if command -v gnuplot >/dev/null; then plot=(--plot "$work/plots"); fi
pictures() { # NAME COMMAND...: a case of what gnuplot has drawn
    if [ ${#plot[@]} -gt 0 ]; then
        check "$@"
    else
        echo "ok - $1 # SKIP gnuplot is not installed"
    fi
}
"$RUNNEL" paper figure >"$work/names"
for where in "a'b" "c; set output 'd'" "|e" "-f"; do
    pictures "a picture in $where" bash -c '
        cd "$1" && "$0" paper figure bus-rate --count 2 --plot "$2" && [ -s "./$2/bus-rate.svg" ]' "$RUNNEL" "$work" "$where"
done
pictures "nothing but the picture's folder was made by its name" bash -c '! [ -e "$1/d" ] && ! [ -e "$1/a" ]' "$RUNNEL" "$work"
"$RUNNEL" paper figure all --count 4 "${plot[@]}" >"$work/figures" 2>"$work/err"
cat >"$work/figures.py" <<'END'
import re, sys, xml.dom.minidom
text = open(sys.argv[2]).read() + "\n"
titles = [line.rstrip("\n").split(None, 1) for line in open(sys.argv[1])]
assert len(titles) >= 26, len(titles)
wanted = "ni-speed bus-rate combining packet scan interrupts overload senders page buffers attention attention-cost"
assert set(wanted.split()) <= {name for name, _ in titles}
at = [text.index(title.replace(" (what-if)", "")) for _, title in titles] + [len(text)]
assert at == sorted(at), "not in the order of their list"
for (name, title), begin, end in zip(titles, at, at[1:]):
    part = text[begin:end]
    rows = re.findall(r"^ +[0-9.]+((?: +[-0-9.e+]+)+)$", part, re.M)
    assert len(rows) >= 4, (name, part)
    assert ("no published figure validates it" in part) == ("(what-if)" in title), name
    if len(sys.argv) > 3:
        svg = xml.dom.minidom.parse("%s/%s.svg" % (sys.argv[3], name))
        drawn = sum(p.getAttribute("d").count("L") > 3 for p in svg.getElementsByTagName("path"))
        assert drawn >= len(rows[0].split()), (name, drawn)
END
cat >"$work/marks.py" <<'END'
import csv, re, sys
text = open(sys.argv[1]).read()
names = [line.split(None, 1) for line in open(sys.argv[2])]
begins = [text.index(title.strip().replace(" (what-if)", "")) for _, title in names] + [len(text)]
marks = {name: " ".join(re.findall("^published: (.*)$", text[b:e], re.M)).replace(",", "")
         for (name, _), b, e in zip(names, begins, begins[1:])}
figure = {"000": "fm-%s", "002": "vmmc-%s", "004": "survey-%s"}
looked = 0
for r in csv.DictReader(open(sys.argv[3])):
    at = re.fullmatch(r"Fig (\d)", r["place"])
    if not at or r["paper"] not in figure or not r["value"] or (r["unit"] == "us" and r["paper"] == "000"):
        continue # a latency is on no curve of a rate
    name, value = figure[r["paper"]] % at[1], r["value"].strip("<>=")
    on = [marks[n] for n in (name, name + "b") if n in marks]
    assert any(value in re.findall(r"[\d.]*\d", m) for m in on), (r["id"], name, value, on)
    looked += 1
assert looked >= 15, looked
END
check "each figure marks the values that survive of it" \
    python3 "$work/marks.py" "$work/figures" "$work/names" "$RUNNEL_SOURCE/sim/myrinet/rows.csv"
check "each figure has its curves, and a what-if says that it is one" \
    python3 "$work/figures.py" "$work/names" "$work/figures"
pictures "each figure's picture is SVG with a line for each curve" \
    python3 "$work/figures.py" "$work/names" "$work/figures" "$work/plots"
cat >"$work/titles.py" <<'END'
import re, sys, xml.dom.minidom
titles = [line.rstrip("\n").split(None, 1) for line in open(sys.argv[1])]
private = {s for s in open(sys.argv[2]).read().split() if s not in ("simple", "probe")} | {"row", "rows", "ours"}
for name, title in titles:
    title = title.replace(" (what-if)", "")
    words = set(re.findall(r"[\w.-]+", title))
    assert not words & private - {"ours"} and not any("_" in w or re.fullmatch(r"H-\w+", w) for w in words), (name, title)
    assert title[0].isupper() and len(title) > 20 and not title.endswith((",", ":", " ")), (name, title)
    if len(sys.argv) < 4:
        continue
    svg = xml.dom.minidom.parse("%s/%s.svg" % (sys.argv[3], name)).documentElement
    width, height = (float(svg.getAttribute(a)) for a in ("width", "height"))
    lines = []
    for t in svg.getElementsByTagName("text"):
        text = "".join(c.data for c in t.getElementsByTagName("tspan")[0].childNodes if c.nodeType == c.TEXT_NODE) \
            if t.getElementsByTagName("tspan") else t.firstChild.data
        where = t.parentNode.getAttribute("transform")
        x, y = map(float, re.match(r"translate\(([-\d.]+),([-\d.]+)\)", where).groups())
        room = 0.58 * 13 * len(text.strip()) # of letters of 13 px, as wide as they are in the mean
        left = {"middle": x - room / 2, "end": x - room}.get(t.parentNode.getAttribute("text-anchor"), x)
        if "rotate" not in where:
            assert 4 < left and left + room < width - 4 and 0 < y < height, (name, text, left, room)
        lines.append(" ".join(text.split()))
    whole = " ".join(lines)
    assert title in whole, (name, title, whole)
    assert re.search(r"\((NOT validated|not validated|validated|a what-if: no published|what the paper prints)", whole), name
END
"$RUNNEL" paper list | sed -n '/^Systems:/,/^Machines:/s/^  \([^ ]*\) .*/\1/p' >"$work/systems"
check "titles are whole sentences without the command's own names" \
    python3 "$work/titles.py" "$work/names" "$work/systems"
pictures "pictures have whole titles, none is cut at an edge, and each says what validates it" \
    python3 "$work/titles.py" "$work/names" "$work/systems" "$work/plots"
refuses "a processor that only polls is one of three" "takes polls, interrupts or processor" \
    paper run vmmc --measure answer --attention sleep
exit "$failed"
