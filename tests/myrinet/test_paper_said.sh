#!/usr/bin/env bash
# runnel paper: traces, profiles, machines, the matrix and the results page, and what is refused.
# shellcheck disable=SC2016,SC2154 # programs for bash -c; variables of checks.sh
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
check "a trace shows what is on the bus" bash -c '"$0" paper trace vmmc | grep -q "0     bus       store, 4 bytes"' "$RUNNEL"
mapfile -t all < <(systems)
traced=()
for system in "${all[@]}"; do # those that send messages of 640 bytes from one host to another
    if "$RUNNEL" paper trace "$system" --measure stream-rate --size 640 --count 2 --plot "$work/traces"; then traced+=("$system"); fi
    # Hosts that look across the bus keep their cards from waiting.
    if paper run "$system" --count 1 --across 2>&1 | grep -q "across the bus anyhow"; then echo "$system" >>"$work/traces/across"; fi
done >"$work/traced" 2>&1
check "traces are JSON for viewers and SVG: both nodes, every lane, and no engine or bus does two things at once" \
    python3 - "$work/traces" "${traced[@]}" <<'END'
import collections, json, sys, xml.dom.minidom
assert len(sys.argv) > 30, sys.argv
said = open(sys.argv[1] + "/../traced").read().split("\n")
for system in sys.argv[2:]:
    lanes, names, names_of = collections.defaultdict(list), {}, collections.defaultdict(set)
    for e in json.load(open("%s/%s.trace.json" % (sys.argv[1], system)))["traceEvents"]:
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["ph"] in "MX", e
        if e["name"] == "thread_name":
            names[e["pid"], e["tid"]] = e["args"]["name"]
        elif e["ph"] == "X":
            assert e["ts"] >= 0 and e["dur"] >= 0, e
            names_of[e["pid"], names[e["pid"], e["tid"]]].add(e["name"])
            lanes[e["pid"], names[e["pid"], e["tid"]]].append((e["ts"], e["ts"] + e["dur"]))
    assert {"bus", "firmware", "host DMA", "send", "receive", "host"} <= {lane for _, lane in lanes}, (system, lanes.keys())
    assert {0, 1} == {node for node, _ in lanes}
    idle = {"waits"} - {"waits" for s in open(sys.argv[1] + "/across").read().split() if s == system}
    for node in (0, 1): # of a card's program: what it does, by function, and all of its time
        program = names_of[node, "firmware"]
        assert {"step"} | idle <= program and "firmware" not in program, (system, program)
        spans = sorted(lanes[node, "firmware"])
        assert all(abs(b[0] - a[1]) < 2e-6 for a, b in zip(spans, spans[1:])), (system, node)
        assert spans[0][0] == 0 and spans[-1][1] >= max(
            b for (_, lane), l in lanes.items() if lane != "firmware" for _, b in l) - 2e-6, (system, node)
    assert {"step", "start send", "open port"} | idle | (idle and {"start host DMA"}) <= (
        names_of[0, "firmware"] | names_of[1, "firmware"]), (system, names_of)
    assert len(names_of[0, "firmware"] | names_of[1, "firmware"]) > 5, (system, names_of)
    for lane, spans in lanes.items():
        spans.sort()
        for one, next_one in zip(spans, spans[1:]):
            assert next_one[0] >= one[1] - 2e-6, (system, lane, one, next_one)
    svg = xml.dom.minidom.parse("%s/%s.svg" % (sys.argv[1], system)).documentElement
    title = svg.getElementsByTagName("text")[0].firstChild.data
    assert title in said and "stream-rate, 2 messages of 640 bytes: " in title, (system, title)
    right = float(svg.getAttribute("width"))
    boxes = [r for r in svg.getElementsByTagName("rect") if r.getAttribute("x")]
    assert len(boxes) > 20, (system, len(boxes))
    assert all(float(r.getAttribute("x")) + float(r.getAttribute("width")) <= right for r in boxes), system
END
MALLOC_PERTURB_=165 "$RUNNEL" paper trace vmmc >"$work/vmmc" # what was freed is no name any more
check "a trace breaks a message down: who takes the request, its header, its packet, and what arrives" bash -c '
    for part in "0  *firmware  look_for_request" "0  *firmware  header" "0  *firmware  start send" \
        "1  *firmware  receive" "1  *firmware  start host DMA" "0  *firmware  waits"; do
        grep -q " $part$" "$0" || { echo "$part"; exit 1; }
    done
    awk "NR == 1 { all = \$(NF - 1) } /^ *node 0 +node 1/ { on = 1; next } on && \$3 { a += \$1; b += \$2 }
        END { exit !(all > 9 && a > all - 0.01 && a < all + 0.01 && b > all - 0.01 && b < all + 0.01) }" "$0"' "$work/vmmc"
check "a profile names the functions, too" bash -c '"$0" paper profile vmmc --count 20 |
    grep -q "^firmware.c  *[0-9]*  look_for_request  *[0-9]"' "$RUNNEL"
check "a profile names the files that firmware shares" bash -c '"$0" paper profile fm1 --count 20 |
    grep -q "^carry.h  *[0-9]"' "$RUNNEL"
check "a trace shows both nodes" bash -c '"$0" paper trace vmmc | grep -q "1     host DMA  to host"' "$RUNNEL"
check "a profile of a firmware that sends no messages has figures" bash -c '"$0" paper profile probe |
    grep -q "^firmware.c .* [0-9.]* *[0-9.]*  *[0-9.]*%$" && ! "$0" paper profile probe | grep -qE "inf|nan"' "$RUNNEL"
check "a profile adds up" bash -c '"$0" paper profile simple --count 20 |
    awk "/%/ { s += \$NF } END { exit !(s > 98 && s < 101) }"' "$RUNNEL"
check "a machine is printed as a file that can be read back" bash -c '
    "$0" paper machine H-PP >"$1" && "$0" paper run bip --machine-file "$1" --count 10' "$RUNNEL" "$work/m"
check "a value is changed without building anew" bash -c '
    a=$("$0" paper run vmmc --json --count 20) &&
    b=$("$0" paper run vmmc --json --count 20 --set dma_setup=5) && [ "$a" != "$b" ]' "$RUNNEL"

sed '/^load /d' "$work/m" >"$work/less"
refuses "a machine without a value" "load is missing" paper run bip --machine-file "$work/less"
sed 's/^load .*/load 0.5 ns given x/' "$work/m" >"$work/unit"
refuses "a value in another unit" "is kept in us" paper run bip --machine-file "$work/unit"
sed 's/^load .*/load nan us given x/' "$work/m" >"$work/nan"
refuses "a value that is no number" "has to be from" paper run bip --machine-file "$work/nan"
refuses "a system that is not there" "there is no system 'amoeba'" paper run amoeba
refuses "more processes than a card has queues" "the card of vmmc can have 4" paper run vmmc --processes 5
refuses "two processes on a card for one" "fm1 can have 1 attached; more than one those of: vmmc, am2, vmmc2, unet, hamlyn$" paper run fm1 --processes 2
refuses "less memory than a card can have" "^runnel paper: sram is -1; it has to be from 16" paper run vmmc --set sram=-1
check "what the text says of tuned firmwares is what they take: plain, in four fifths of the time, tuned" \
    python3 - "$RUNNEL" "$RUNNEL_SOURCE/doc/paper-machine.md" <<'END'
import json, subprocess, sys
def us(system, *options):
    ran = subprocess.run([sys.argv[1], "paper", "run", system, "--json", *options], capture_output=True, text=True)
    return json.loads(ran.stdout)["value"] if ran.returncode == 0 else None
styles = open(sys.argv[2]).read().split("| programs in 4/5 |")[1].split("\n\n")[0].split("\n")[2:]
systems = set()
for line in styles:
    names, *cells = [cell.strip().split("; ")[0].split(", ") for cell in line.split("|")[1:5]]
    for i, name in enumerate(names):
        systems.add(name)
        for cell, ours in zip(cells, (us(name), us(name, "--set", "ni_time=0.8"), us(name + "-tuned"))):
            said = cell[i] if cell != [""] else None
            digits = len(said.partition(".")[2]) if said else 0
            assert (said is None) == (ours is None), (name, said, ours)
            assert said is None or abs(float(said) - ours) <= 0.501 * 10 ** -digits, (name, said, ours)
assert len(systems) == 14 and "trapeze" in systems, systems
END
refuses "a part of late packets where each has its own time" "no effect beside --reorder" \
    paper run hamlyn --reorder --late 0.1
refuses "packets in any order of all systems" "--reorder has no effect on matrix" paper matrix --reorder
check "packets in any order: Hamlyn brings all, FM says that it takes the network to keep order" bash -c '
    a=$("$0" paper run hamlyn --measure stream-rate --size 20000 --count 30 --reorder) &&
    echo "$a" | grep -q "messages 30 sent, 30 received, 0 wrong" && ! echo "$a" | grep -q " 0 overtaken" || exit 1
    e=$("$0" paper run fm2 --measure stream-rate --size 20000 --count 30 --reorder 2>&1)
    [ $? = 1 ] && echo "$e" | grep -q "fm2 takes the network to keep packets in order"' "$RUNNEL"
refuses "pages of all systems" "--page-out has no effect on matrix" paper matrix --page-out 1
refuses "more pages than there are" "takes a number from 0 to 1, not '2'" paper run unet --page-out 2
check "pages that are taken back: a run says how many, and how many stayed, as its JSON does; who has none is told whose have" \
    python3 - "$RUNNEL" <<'END'
import json, re, subprocess, sys
run = lambda *of: subprocess.run([sys.argv[1], "paper", "run", *of], capture_output=True, text=True)
for system in ("am2", "vmmc2", "unet", "unet-mm", "hamlyn"):
    said, calm = run(system, "--count", "20", "--page-out", "0.5"), run(system, "--count", "20").stdout
    outs, ins, stayed = map(int, re.search(r"pages    (\d+) taken back between messages, (\d+) brought in again; (\d+) times one stayed",
                                           said.stdout).groups())
    assert "40 sent, 40 received, 0 wrong" in said.stdout and outs >= ins > 10 and stayed > 20, said
    assert "pages" not in calm and said.stdout != calm, calm
    j = json.loads(run(system, "--count", "20", "--page-out", "0.5", "--json").stdout)
    assert (j["page_outs"], j["page_ins"], j["pages_stayed"]) == (outs, ins, stayed), j
none = run("fm1", "--page-out", "0.5")
assert none.returncode == 64 and "of which no page is taken back; those of these systems have: am2, vmmc2, unet, hamlyn\n" in none.stderr, none
END
refuses "senders where there is one" "is measured as goodput" paper run fm1 --senders 2
"$RUNNEL" paper matrix --json >"$work/matrix.json"
"$RUNNEL" paper matrix >"$work/matrix"
check "the matrix has a system of each folder that sends messages, overload of those that bear it, and what it costs on the wire" \
    python3 - "$RUNNEL" "$work/matrix.json" "$RUNNEL_SOURCE/sim/myrinet/systems/list" <<'END'
import json, subprocess, sys
runnel, matrix, folders = sys.argv[1:]
m = {r["system"]: r for r in json.load(open(matrix))}
of = [l.split(" | ")[1].replace("_", "-").split() for l in open(folders) if not l.startswith("#")]
sends = lambda s: subprocess.run([runnel, "paper", "run", s, "--measure", "to-all", "--count", "1"], capture_output=True).returncode == 0
for systems in of:
    calls = subprocess.run([runnel, "paper", "run", systems[0], "--measure", "call", "--count", "1"], capture_output=True).returncode == 0
    assert bool(set(systems) & set(m)) == (sends(systems[0]) and not calls), systems
for s in set(m) - {s for s in m if "overload" in m[s]} | {"bip"}: # who has none has nothing that stops its senders
    run = [runnel, "paper", "run", s, "--machine", "H-PP", "--measure", "goodput", "--size", "128", "--senders", "4", "--slow", "20", "--count", "100"]
    assert "overload" not in m[s] and b"ring is overrun" in subprocess.run(run, capture_output=True).stderr, s
for credits in ("fm1", "fmmc", "lfc"):
    assert max(m[s]["overload_wire"] for s in m if s != "bip") > 2.5 * m[credits]["overload_wire"], credits
END
check "the matrix has one way also of each second firmware, as a run of it has" bash -c '
    python3 - "$0" "$1" <<END
import json, re, subprocess, sys
runnel, matrix = sys.argv[1:]
listed = set(re.findall(r"^  (\S+)-tuned ", subprocess.run([runnel, "paper", "list"], capture_output=True, text=True).stdout, re.M))
m = {r["system"]: r for r in json.load(open(matrix))}
assert {s for s in m if "tuned_one_way_us" in m[s]} == listed & set(m) and len(listed & set(m)) > 10, listed
for s in listed & set(m):
    run = [runnel, "paper", "run", s + "-tuned", "--machine", "H-PP", "--json"]
    assert m[s]["tuned_one_way_us"] == json.loads(subprocess.run(run, capture_output=True).stdout)["value"], s
END' "$RUNNEL" "$work/matrix.json"
check "the matrix: to several, where a system has its way; what is copied, crosses a bus, and is executed" \
    python3 - "$work/matrix.json" "$work/matrix" <<'END'
import json, sys
m = {r["system"]: r for r in json.load(open(sys.argv[1]))}
words = [l.rstrip("\n") for l in open(sys.argv[2])][2:3 + len(m)]
many = words[0].index("to many")
assert {l.split()[0] for l in words[1:]} == set(m)
to_many = {l.split()[0] for l in words[1:] if l[many:] != "no"}
assert {s for s in m if "to_8_us" in m[s]} == {s for s in m if "to_16_us" in m[s]} == to_many >= {"fmmc", "lfc", "pm"}
for s in ("fmmc", "lfc"): # a tree: one more level; the card of PM sends each
    assert m[s]["to_16_us"] < 1.4 * m[s]["to_8_us"] and m["pm"]["to_16_us"] > 1.9 * m["pm"]["to_8_us"], s
# by how their papers move 1 KB: into an area and out of it, out of a ring, not at all
copied = dict(simple=2, fm1=1, fm2=1, fmmc=1, pm=0, vmmc=0, vmmc2=0, lfc=1, am2=2, bip=1, unet=2, hamlyn=2)
for s, n in copied.items():
    assert abs(m[s]["copied"] - n) < 0.02, (s, m[s]["copied"])
assert m["mpi-fm1"]["copied"] > m["fm1"]["copied"] + 1.9 and m["mpi-fm2"]["copied"] < m["fm2"]["copied"] + 0.1
for s, r in m.items():
    assert 2 <= r["bus_bytes"] < 3.5 and (r["bus_bytes"] > 3) == (s == "am2"), (s, r["bus_bytes"]) # am2's host loads
    assert r["send_us"] < r["one_way_us"] and 0.1 < r["receive_us"] < r["one_way_us"] < 40, s
    assert r["gap_us"] >= r["send_us"], s
    assert 20 < r["sender_instructions"] < 1000 and 20 < r["receiver_instructions"] < 1000, s
    assert 4 * r["sender_instructions"] < 8 * r["firmware_bytes"] and r["firmware_bytes"] < r["sram_bytes"] < 1 << 20, s
    assert 0 < r["pinned_pages"] < 200, s
assert m["mpi-fm1"]["firmware_bytes"] == m["fm1"]["firmware_bytes"] # it is that of the system below
assert m["bip"]["sender_instructions"] < m["pm"]["sender_instructions"]
END
check "cells of the matrix are what they add up to by hand: looks, operations, stores, words on the buses" \
    python3 - "$work/matrix.json" <<'END'
import json, sys
m = {r["system"]: r for r in json.load(open(sys.argv[1]))}
miss, operation, store = 0.125, 0.006, 0.121 # of H-PP, us
near = lambda ours, by_hand, room: abs(ours / by_hand - 1) < room or sys.exit("%s of %s" % (ours, by_hand))
near(m["simple"]["receive_us"], miss + 12 * operation + store, 1e-6) # a look, the handler, the place given back
near(m["vmmc"]["receive_us"], miss + 12 * operation, 1e-6)
# a request of four words, a look at the next entry, a word of status, and the data once at each end
near(m["vmmc"]["bus_bytes"], 2 + (4 * 4 + 4 + 4) / 1024, 1e-3)
# four packets: four words of each descriptor, one of each buffer given back, one behind the data
near(m["simple"]["bus_bytes"], 2 + 4 * 4 * (4 + 1 + 1) / 1024, 2e-3)
# each message interrupts a host that computes, but LFC's watchdog spares who looks in time
may = {s: (r["interrupts_looking"], r["interrupts_never"]) for s, r in m.items() if "interrupts_never" in r}
assert {"fmmc", "vmmc", "vmmc2", "lfc", "unet", "unet-mm"} <= set(may), may
assert may["lfc"] == (0, 1) and {may[s] for s in ("fmmc", "vmmc", "vmmc2", "unet")} == {(1, 1)}, may
assert all(1 <= never < 1.01 and 0 <= looking < 1.01 for looking, never in may.values()), may # U-Net/MM misses a page
END
check "the SRAM of the matrix is what a card needs beside its stack of 4 KB" bash -c '
    for system in $(python3 -c "import json, sys; print(*[r[\"system\"] for r in json.load(open(sys.argv[1]))])" "$1"); do
        kb=$(python3 -c "import json, sys
m = {r[\"system\"]: r for r in json.load(open(sys.argv[1]))}
print(-(-(m[sys.argv[2]][\"sram_bytes\"] + 4096) // 1024))" "$1" "$system")
        [ "$kb" -gt 16 ] || continue # no card may have less
        "$0" paper run "$system" --machine H-PP --count 2 --set sram="$kb" >/dev/null &&
            ! "$0" paper run "$system" --machine H-PP --count 2 --set sram=$((kb - 1)) 2>/dev/null || exit 1
    done' "$RUNNEL" "$work/matrix.json"
check "the matrix shows what JSON has, of each system" python3 - "$work/matrix" "$work/matrix.json" <<'END'
import json, sys
said = [l.split() for l in open(sys.argv[1])]
short = ("one_way_us tuned_one_way_us send_us receive_us gap_us to_8_us to_16_us sender_instructions receiver_instructions "
         "interrupts_looking interrupts_never").split()
long = ("rate_1k rate_long long_bytes copied bus_bytes firmware_bytes sram_bytes pinned_pages overload overload_wire").split()
for r in json.load(open(sys.argv[2])):
    issues, one, two = [l[1:] for l in said if l[:1] == [r["system"]]]
    for names, values in ((short, one), (long, two)):
        assert len(names) == len(values), (r, values)
        for name, value in zip(names, values):
            assert (value == "-") == (name not in r) and (value == "-" or abs(float(value) - r[name]) < 0.06), (r, name, value)
END
check "a system whose firmware has no room on a machine has dashes in the matrix, and a line that says so" bash -c '
    "$0" paper matrix --machine H-A --count 4 >"$1" && "$0" paper matrix --machine H-A --count 4 --json >"$1.json" &&
    python3 - "$1" "$1.json" <<END
import json, re, sys
said = open(sys.argv[1]).read()
unfit = re.findall(r"^(\S+): the firmware needs \d+ bytes of SRAM beside", said, re.M)
assert "vmmc" in unfit and "simple" not in unfit, unfit
for r in json.load(open(sys.argv[2])):
    rows = re.findall(r"^%s +(?:[\d.]+ +|- +)+[-\d.]+$" % r["system"], said, re.M)
    assert len(rows) == 2, r
    none = set(" ".join(rows).split()[1:]) <= {"-", r["system"]}
    assert none == (r["system"] in unfit) == (list(r) == ["system"]), r
END' "$RUNNEL" "$work/small"
is_usage "but one that is asked for is refused" "vmmc-tuned: the firmware needs" paper matrix vmmc-tuned --machine H-A --count 4
check "the matrix says what ours of AM-II and of PM have not, which the survey's table gives them" bash -c '
    grep -q "^am2 .* yes  *poll " "$0" && grep -q "^pm  .*none: own buffers  *none  *poll " "$0" &&
    grep -q "AM-II can interrupt, where ours polls;" "$0" && grep -q "PM protects by gang scheduling, which is pm-gang" "$0"
' "$work/matrix"
check "the manual names all systems whose packets may come in any order" bash -c '
    bear=$(sed -n "/^\*--reorder/,/bear that/p" "$1/man/runnel-paper.1.scd" | tr -d "\n" | sed "s/.*order\. //; s/ bear.*//")
    [ "$bear" = "Hamlyn, AM-II, VMMC-2, U-Net and Trapeze" ] &&
        bear=$(sed "s/ and /, /; s/, /\n/g" <<<"$bear") && runnel=$0 && tree=$1 && shift 1 && for system in "$@"; do
            status=0 # messages of several packets, where a system cuts any
            "$runnel" paper run "$system" --reorder --measure stream-rate --size 1280 --count 100 >"$work/reordered" 2>&1 || status=$?
            title=$("$runnel" paper list | sed -n "s/^  $system  *\(.*\) (.*/\1/p")
            title=${title%%[,/]*} && title=${title%%-tuned*} && title=${title%% with firmware*}
            if [ "$status" -eq 64 ] || grep -q " 0 overtaken" "$work/reordered"; then continue; fi # nothing was in another order
            grep -qx -e "$title" <<<"$bear" && may=0 || may=1
            [ "$status" = "$may" ] || { echo "$system: $status"; exit 1; }
        done' "$RUNNEL" "$tree" "${all[@]}"
check "more than two hosts: a run and the matrix say that nothing validates it" bash -c '
    "$0" paper run fm1 --measure goodput --senders 4 --count 20 | grep -q "no published figure validates more than two" &&
    ! "$0" paper run fm1 --measure goodput --count 20 | grep validates &&
    "$0" paper run fm1 --measure goodput --senders 4 --count 20 --json | grep -q "\"what_if\":true" &&
    "$0" paper matrix --count 4 | grep -q "no published figure validates more than two hosts"' "$RUNNEL"
"$RUNNEL" paper figure >"$work/names"
check "the results page is the one that would be written: matrix and figures" \
    python3 - "$work" "$RUNNEL_SOURCE/doc/results/" <<'END'
import sys
work, out = sys.argv[1:]
page = open(out + "README.md").read()
assert open(work + "/matrix").read() in page, "the matrix is another"
for line in open(work + "/names"):
    assert "\n| %s | %s |\n" % tuple(line.rstrip("\n").split(None, 1)) in page, line
END
check "papers are named by authors and year, and list has the bibliography of the manual" bash -c '
    "$0" paper list >"$1" && sed -n "s/^:< //p" "$2" | while IFS=_ read -r who title _; do
        grep -q "^  00[0-4] *${who%, }, $title\$" "$1" || { echo "$who $title"; exit 1; }
    done || exit 1
    [ "$(grep -c "^  00[0-4] " "$1")" -eq "$(grep -c "^:< .*_$" "$2")" ] && [ "$(grep -c "^  00[0-4] " "$1")" -ge 5 ] || exit 1
    for m in $(sed -n "/^Machines:/,/^Measures:/s/^  \([^ ]*\) .*/\1/p" "$1"); do "$0" paper machine "$m" || exit 1; done >>"$1"
    { "$0" paper figure && "$0" paper why 34 --run 1; "$0" paper run fm1 --bad 1 --count 20 2>&1; } >>"$1"
    grep -q "reliable (Lauria et al. 1998, section 3.1)" "$1" || exit 2
    ! grep -nE "papers? 00[0-9]|^.{20,}[ (]00[0-4]([ :,)]|$)" "$1"' "$RUNNEL" "$work/said" "$tree/man/runnel-paper.1.scd"
check "places to send from" bash -c '"$0" paper sweep pm-cache --over places=1,30 --size 65536 --measure stream-rate |
    awk "\$1 == 1 { one = \$2 } \$1 == 30 { exit !(\$2 < 0.9 * one) }"' "$RUNNEL"
refuses "more places than there can be" "from 1 to 1024" paper run pm-cache --places 1025
refuses "more places than memory has" "pages of memory are asked for" paper run pm-cache --places 1000 --size 65536
refuses "a cost on the wire of nothing" "none of .* messages was received" \
    paper run simple --measure wire-cost --bad 1 --count 5
refuses "several senders of several pieces" "take from several what comes as one, up to 8192" \
    paper run pm --measure goodput --senders 2 --size 16384
refuses "a packet of a size that no card has" "takes whole words, 16 to 1024" paper run fm2 --packet 7
refuses "a packet that is not chosen" "those of vmmc cannot be chosen" paper run vmmc --packet 512
refuses "a message too long" "takes whole words" paper run fm1 --size 1000000
refuses "a system that is not named" "name a system" paper run
refuses "an option that would have no effect" "^runnel paper: --over has no effect on run" paper run pm --over size=4,8
refuses "a receiver that computes where nobody asks it to" "slow has no effect on one-way" paper run pm --slow 20
refuses "half a byte" "size are whole numbers, not 4.5" paper sweep pm --over size=4,4.5
for many in size=4294967300 senders=4294967297 packet=4294967552 size=1e30 size=inf page=1e30 slow=inf; do
    is_usage "a sweep over $many, which is another number in 32 bits" "is too large: what a sweep varies goes up to 4294967295" \
        paper sweep simple --over "$many"
done
refuses "more points than there is room for" "up to 24 points" paper sweep pm --over "size=$(seq -s, 4 4 100)"
check "all figures are one array of JSON" bash -c '"$0" paper figure all --count 2 --json |
    python3 -c "import json, sys; f = json.load(sys.stdin); assert len(f) > 25 and all(x[\"curves\"] for x in f)"' "$RUNNEL"
exit "$failed"
