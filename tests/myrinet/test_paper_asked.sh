#!/usr/bin/env bash
# runnel paper: what is asked for wrongly is refused with 64, as is what would have no effect; help, and what is said of
# rows that have no figure or no experiment.
# shellcheck disable=SC2016,SC2154 # programs for bash -c; variables of checks.sh
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# ---- 64 ----
is_usage "a value that no machine has" "no value 'foo'" paper run vmmc --set foo=1
is_usage "a machine that is not there" "no machine 'X'" paper run vmmc --machine X
is_usage "half a word" "takes whole words" paper run vmmc --size 3
is_usage "a sweep over what is no value" "no value 'foo'" paper sweep vmmc --over foo=1,2
is_usage "a sweep over a size that cannot be" "takes whole words" paper sweep vmmc --over size=3,5
is_usage "bounds of a value that no machine has" "no value 'foo'" paper fit foo --bounds
is_usage "bounds of a value that papers give" "link_rate is given or derived" paper fit link_rate --bounds
is_usage "a picture of what has no bounds" "no effect on fit without --bounds" paper fit --plot "$work/none"
is_usage "a value to fit" "no effect on fit without --bounds" paper fit dma_setup
check "bounds: each row is judged as the table does where the value stays, and what is printed is what JSON has" bash -c '
    "$0" paper fit ni_instruction --bounds --plot "$1/drawn" >"$1/bounds" && "$0" paper fit ni_instruction --bounds --json >"$1/bounds.json" &&
    python3 - "$1" "$2" <<END
import json, sys
table = {r["row"]: r["inside"] for r in json.load(open(sys.argv[2]))}
said = open(sys.argv[1] + "/bounds").read()
rows = json.load(open(sys.argv[1] + "/bounds.json"))
assert {r["row"] for r in rows} == set("7a 7b 7c 7d 34 36a 38a 38b 38c".split()), rows
for r in rows:
    assert r["is"] == 4.05 and len(r["inside"]) == 9 and r["inside"]["4.05"] == table[r["row"]], r
    bar = "".join(".#"[v] for v in r["inside"].values())
    line = [l for l in said.split("\n") if l.split()[:1] == [r["row"]]]
    assert len(set(bar)) == 1 or "|%s|" % bar in line[0], (bar, line)
apart = [(a["row"], b["row"]) for i, a in enumerate(rows) for b in rows[i + 1:]
         if any(a["inside"].values()) and any(b["inside"].values())
         and not any(x and y for x, y in zip(a["inside"].values(), b["inside"].values()))]
assert all("%s and %s" % pair in said for pair in apart) and (apart or "no two rows" in said), apart
import math, re
import xml.dom.minidom
drawn = xml.dom.minidom.parse(sys.argv[1] + "/drawn/bounds.svg")
texts = [(int(t.getAttribute("x")), int(t.getAttribute("y")), "".join(c.data for c in t.childNodes)) for t in drawn.getElementsByTagName("text")
         if "." not in t.getAttribute("x")]
bars = [[float(b.getAttribute(k) or 0) for k in ("x", "y", "width")] + [b.getAttribute("fill")] for b in drawn.getElementsByTagName("rect")]
tick = {float("".join(c.data for c in t.childNodes)): float(t.getAttribute("x")) for t in drawn.getElementsByTagName("text") if t.getAttribute("class") == "tick"}
places = {y: name for x, y, name in texts if x == 8 and y > 80}
for r in rows:
    bar = "".join(".#"[v] for v in r["inside"].values())
    if len(set(bar)) == 1:
        assert r["row"] not in places.values(), r
        continue
    y, = [y for y, name in places.items() if name == r["row"]]
    for at, (number, inside) in zip(sorted(tick), r["inside"].items()):
        covers = [fill for x, top, width, fill in bars if abs(top - y + 11) < 1 and x <= tick[at] <= x + width]
        assert len(covers) == 1 and (covers[0] != "#e4e4e4") == inside, (r, at, covers)
    never = {b if a == r["row"] else a for a, b in apart if r["row"] in (a, b)}
    assert set("".join(t for x, top, t in texts if x == 970 and top == y).split()) == never, (r, never)
common = [all(r["inside"][n] for r in rows if r["inside"]["4.05"]) for n in rows[0]["inside"]]
y, = [y for y, name in places.items() if name == "all that are inside now"]
for at, inside in zip(sorted(tick), common):
    fill, = [fill for x, top, width, fill in bars if abs(top - y + 11) < 1 and x <= tick[at] <= x + width]
    assert (fill != "#e4e4e4") == inside, (at, fill, common)
END' "$RUNNEL" "$work" "$RUNNEL_SOURCE/doc/results/table.json"
is_usage "the matrix on no machine" "no machine 'X'" paper matrix --machine X
is_usage "the matrix of no value" "no value 'foo'" paper matrix --set foo=1
is_usage "a table of no value, before its first line" "no value 'foo'" paper table all --set foo=1
is_usage "as JSON, too" "no value 'foo'" paper table all --set foo=1 --json
is_usage "buffers that cannot be chosen" "cannot be chosen" paper run vmmc --buffers 4
is_usage "a measure that a system has not" "cannot be measured" paper profile probe --measure one-way
is_usage "a measure that another system has" "jacobi of panda cannot be measured; what can: one-way, .*call, call-rate" \
    paper run panda --measure jacobi
is_usage "messages of Orca in the matrix" "orca has none of the messages .*: call, call-rate, jacobi" paper matrix orca
check "without --measure, it is what the system has: a call of Orca and of Panda, local-rate of what is alone" bash -c '
    for s in orca:call panda:call probe:local-rate lfc:one-way; do
        "$0" paper run "${s%:*}" --count 20 --json | grep -q "\"measure\":\"${s#*:}\"" || exit 1
    done && "$0" paper trace orca | head -n 1 | grep -q ", call," && "$0" paper profile orca --count 5 >"$1/profile" &&
    "$0" paper sweep orca --over size=4,8 --count 5 | grep -q "call over size"' "$RUNNEL" "$work"
is_usage "a row that is not there" "no published figure" paper table 99z
check "a run that fails is no wrong argument" bash -c '
    "$0" paper run bip --count 300 --size 1024 --measure stream-rate; [ $? -eq 1 ]' "$RUNNEL"
check "a picture that cannot be drawn is no wrong argument" bash -c '
    "$0" paper figure fm-1 --plot /dev/null/x; [ $? -eq 1 ]' "$RUNNEL"

# ---- no effect ----
is_usage "list of something" "takes no argument, but there is 'extra'" paper list extra
is_usage "a packet of a figure" "--packet has no effect on figure; it is of: run, trace, profile, sweep" \
    paper figure bus-rate --packet 512
is_usage "another option names its commands" "it is of: figure, trace, sweep" paper run vmmc --plot x
is_usage "a value that varies anyhow" "no effect where page is what varies" paper figure page --set page=4096
is_usage "a size that varies anyhow" "no effect where size is what varies" paper sweep vmmc --over size=4,8 --size 16
is_usage "a machine for what has nothing of ours" "nothing of ours" paper figure fm-2 --machine H-P
is_usage "two machines" "no effect beside --machine-file" paper run vmmc --machine H-P --machine-file x
is_usage "a machine twice" "'H-P' has no effect beside" paper machine H-P --machine H-S
mapfile -t all < <(systems)
check "an option that a system takes changes its run, and what it does not take is refused, with the systems that do" \
    python3 - "$RUNNEL" "${all[@]}" <<'END'
import re, subprocess, sys
runnel, systems = sys.argv[1], sys.argv[2:]
def run(system, *options):
    r = subprocess.run([runnel, "paper", "run", system, *options], capture_output=True, text=True)
    return r.returncode, r.stdout.split("\n  cards")[0], r.stderr
of = lambda option: {"--cold": ("--size", "4096", "--count", "20"), "--places": ("--size", "4096", "--count", "40")}.get(option, ("--count", "40"))
named = {"--cold": "take one of: (.*)", "--places": "take one of: (.*)", "--notify": "can: (.*)", "--page-out": "have: (.*)"}
for option, more in (("--across", ()), ("--cold", ()), ("--places", ("64",)), ("--notify", ()), ("--bad", ("0.2",)), ("--lost", ("0.2",)),
                     ("--late", ("1",)), ("--reorder", ()), ("--page-out", ("0.5",))):
    refused, taken = {}, []
    for s in systems:
        cold = ("--cold",) if option == "--places" and run(s, "--count", "1", "--cold")[0] == 0 else ()
        now = run(s, *of(option), *cold, option, *more)
        if now[0] == 64:
            refused[s] = now[2]
            continue
        taken.append(s)
        was = run(s, *of(option), *cold)
        assert was[0] == 0, (s, was)
        assert now != was, (s, option, was)
    assert refused, option
    for s, said in refused.items():
        assert s in said, said
        if option in named:
            plain = [t for t in taken if not any(t.startswith(u + "-") for u in taken)]
            assert re.search(named[option], said)[1].split(", ") == plain, (option, said, plain)
END
is_usage "places as what varies, of what keeps nothing of them" "take one of: vmmc, " paper sweep fm1 --over places=1,8
is_usage "the system's own way where it has none" "no way of its own to several: take --bringer repeats or hosts, or one of: pm, " \
    paper run vmmc --measure to-all --bringer system
is_usage "who brings it where it goes to one" "--bringer has no effect on one-way" paper run pm --bringer system
is_usage "how it is seen where nobody asks" "--attention has no effect on one-way" paper run pm --attention polls
is_usage "a rate of one message" "stream-rate of one message is no rate.*(--count)" paper run vmmc --measure stream-rate --count 1
is_usage "an SRAM that is too small names the system" "^runnel paper: vmmc: the firmware needs 190484 bytes" paper run vmmc --machine H-A
is_usage "as does a run of jobs" "^runnel paper: pm-gang: the firmware needs" paper run pm-gang --measure switch-cost --set sram=16
refuses "AM-II says how many messages came back, and why" \
    "am2 returned 1 of 1 messages to their senders: no answer came, however often they were sent; .* lost: 100," \
    paper run am2 --lost 1 --count 5
check "a time says what its first message took, and is the mean with it in" python3 - "$RUNNEL" <<'END'
import json, subprocess, sys
def run(system, measure, count):
    r = subprocess.run([sys.argv[1], "paper", "run", system, "--measure", measure, "--count", str(count), "--json"], capture_output=True, text=True)
    return json.loads(r.stdout)
for system, measures in (("hamlyn", "one-way round-trip send-cost post-cost answer take-cost to-all"), ("lfc", "fetch to-all"), ("orca", "call")):
    for measure in measures.split():
        one, two, three = (run(system, measure, n) for n in (1, 2, 3))
        assert one["first"] == one["value"] == two["first"] == three["first"], (system, measure, one, two, three)
assert run("hamlyn", "one-way", 2)["first"] > 2 * run("hamlyn", "one-way", 50)["value"] # it is where there is a start to be seen
assert "first" not in run("hamlyn", "stream-rate", 3)
END
check "the measure of a trace is shown" bash -c '
    "$0" paper trace vmmc --measure one-way | head -n 1 | grep -q ", one-way, 1 message of 4 bytes"' "$RUNNEL"

# ---- help ----
check "each command's help names it and its options, and no others" bash -c '
    for c in list run table figure trace profile matrix sweep fit machine; do
        "$0" paper $c --help | head -n 1 | grep -q "^Usage: runnel paper $c" || exit 1
    done
    "$0" paper table --help | grep -q -e "--json" && ! "$0" paper table --help | grep -q -e "--size" &&
    "$0" paper sweep --help | grep -q -e "--over" && ! "$0" paper run --help | grep -q -e "--over" &&
    [ "$("$0" paper list --help | grep -c -e "--")" -eq 0 ]' "$RUNNEL"

check "help of new has the steps that the examples have" bash -c '
    steps=$(cd "$1" && echo * | sed "s/ /, /g") && "$0" paper new --help | grep -q "^The steps: $(
        tr -d "[:space:]" <<<"$steps" | sed "s/,/, /g")\."' "$RUNNEL" "$tree/examples/paper"
check "the list says of each measure what it is, in its unit" bash -c '
    "$0" paper list | sed -n "/^Measures:/,/^Papers,/p" | sed "/^[^ ]/d" >"$1" && [ "$(wc -l <"$1")" -gt 20 ] &&
    ! grep -vE "^  [a-z-]+ +(us|MB/s|B/B) +[a-z].{16,}$" "$1" && while read -r measure unit _; do
        value=$("$0" paper run pm --count 4 --measure "$measure" 2>/dev/null | head -n 1)
        [ -z "$value" ] || grep -q ": $measure [0-9.]* $unit, " <<<"$value" || exit 1
    done <"$1"' "$RUNNEL" "$work/measures"

# ---- tables ----
check "the mean of no figures is not 0 %" bash -c '
    "$0" paper table 27b | grep -q "^off in the mean: no rows with a figure" &&
    "$0" paper table 34 | grep -q "^held rows: no rows" && ! "$0" paper table 27b | grep -q "0\.0 %"' "$RUNNEL"
"$RUNNEL" paper table later >"$work/later"
"$RUNNEL" paper table second >"$work/second"
"$RUNNEL" paper table machine >"$work/machine"
check "no name is cut in a table" python3 - "$work" "$RUNNEL_SOURCE/sim/myrinet/rows.csv" <<'END'
import csv, sys
text = {c: open("%s/%s" % (sys.argv[1], c)).read().split("\n") for c in ("later", "second", "machine")}
looked = 0
for r in csv.DictReader(open(sys.argv[2])):
    where = r["class"] if r["class"] in ("later", "second") else r["system"]
    if where not in text:
        continue
    line, = [l for l in text[where] if l.split(" ")[0] == r["id"]]
    assert " %s " % r["metric"] in line and " %s " % r["system"] in line, line
    looked += 1
assert looked > 30, looked
END
check "nor of a curve" bash -c '"$0" paper figure buffers --count 3 | grep -q "  PM, who receives computes  "' "$RUNNEL"
check "a row that is not counted, or has no experiment, says what is missing" \
    python3 - "$work/later" "$RUNNEL_SOURCE/sim/myrinet/rows.csv" <<'END'
import csv, sys
rows = [l for l in open(sys.argv[1]) if l.split() and l.split()[0][0].isdigit()]
later = [r for r in csv.DictReader(open(sys.argv[2])) if r["class"] == "later"]
assert later and len(rows) == len(later), (len(rows), len(later))
for l in rows:
    assert "  no " in l and " here" in l, l
END
check "held rows that came later are counted by themselves, as they were at first and as they are" python3 - "$work/second" <<'END'
import re, sys
text = open(sys.argv[1]).read()
rows = [l for l in text.split("\n") if re.match(r"\d+[a-d]? ", l)]
inside = sum(l.rstrip().endswith("inside") for l in rows)
assert len(rows) >= 15 and all(re.search("(inside|MISS)$", l.rstrip()) for l in rows), rows
said = re.search(r"\(second\): inside at the first comparison (\d+) of (\d+), and now (\d+) of (\d+), of which (\d+) with the row in sight \(10b 40d 41 71a 72c 72d 78 79a 80a\)$",
    text, re.M)
# Three rows are halves of what was one row at first: 71c and 71d, 72a and 72c, 72b and 72d.
assert said and int(said[4]) == len(rows) == int(said[2]) + 3 and int(said[3]) == inside and int(said[1]) >= 6, (said and said[0], inside)
END
check "VMMC's two shapes are judged by every size: a tie is not less" bash -c '
    "$0" paper table 27b | grep -q "true .*inside" && "$0" paper table 33 | grep -q "false .*MISS"' "$RUNNEL"

# ---- figures ----
"$RUNNEL" paper figure all --count 2 --json >"$work/figures.json"
check "a figure is validated only by held rows that are all inside, and names them and what misses" \
    python3 - "$work/figures.json" "$RUNNEL_SOURCE/doc/results/table.json" <<'END'
import json, sys
figures = {f["figure"]: f for f in json.load(open(sys.argv[1]))}
rows = {r["row"]: r for r in json.load(open(sys.argv[2]))}
assert not figures["fm-1"]["validated"] and not figures["fm-2"]["validated"]
for f in figures.values():
    assert set(f["rows"]) <= set(rows), (f["figure"], f["rows"])
    missed = [r for r in f["rows"] if not rows[r]["inside"]]
    held = [r for r in f["rows"] if rows[r]["class"] in ("held", "second")]
    assert f["missed"] == missed and f["validated"] == bool(held and not missed), (f["figure"], f["missed"], missed)
    assert all(r in f["said"].split("published")[-1] for r in f["rows"]) and f["said"], f
    assert f["said"].startswith("validated") == f["validated"] and ("NOT" in f["said"]) == bool(missed), f["said"]
    assert f["validated"] or not f["rows"] or "not validated" in f["said"].lower(), f["said"]
assert sum(bool(f["rows"]) for f in figures.values()) >= 12 and sum(f["validated"] for f in figures.values()) >= 2
assert any(f["missed"] for f in figures.values())
END
check "a figure on another machine than its rows are of is not validated" bash -c '
    "$0" paper figure vmmc-3 --count 2 --json | grep -q "\"validated\": true" &&
    "$0" paper figure vmmc-3 --count 2 --set dma_rate=120 --json | grep -q "\"validated\": false" &&
    "$0" paper figure vmmc-3 --count 2 --machine H-PP | grep -q "^(not validated: on another machine"' "$RUNNEL"
check "more processes never make a send faster, whatever the seed" bash -c '
    for seed in 1 2; do
        "$0" paper sweep vmmc --over processes=1,2,3,4 --seed $seed |
            awk "/^ +[1-4] / { bad += n && !(\$2 > last + 0.3 && \$2 < last + 0.7); last = \$2; n++ }
                END { exit bad || n != 4 }" || exit 1
    done' "$RUNNEL"
check "a bus faster than the SRAM is as fast as that, and the figure says why it falls" bash -c '
    "$0" paper sweep vmmc --over dma_rate=264,400,528 --machine H-PP --size 65536 --measure ping-rate |
        awk "/^ +[2-5]/ { v[n++] = \$2 } END { exit !(n == 3 && v[0] == v[1] && v[1] == v[2]) }" &&
    "$0" paper figure bus-rate --count 2 | grep -q "264 MB/s in all" &&
    "$0" paper figure buffers --count 3 | grep -q "ring of 8" &&
    "$0" paper figure scan --count 3 --json | python3 -c "
import json, sys
assert \"idle loop\" in json.load(sys.stdin)[\"note\"]"' "$RUNNEL"
exit "$failed"
