#!/usr/bin/env bash
# runnel paper diff: one message of two systems side by side. What it says adds up, and is what other commands say.
# shellcheck disable=SC2016,SC2154 # programs for bash -c; variables of checks.sh
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"

# All systems that send messages, two and two; a long message of those that move it in parts.
"$RUNNEL" paper list | sed -n '/^Systems:/,/^Machines:/s/^  \([^ ]*\) .*/\1/p' >"$work/names"
while read -r system; do
    "$RUNNEL" paper run "$system" --machine H-PP --count 20 --json 2>/dev/null
done <"$work/names" | grep '"measure":"one-way"' >"$work/runs"
check "there are runs of at least 18 systems to compare with" bash -c '[ "$(wc -l <"$1")" -ge 18 ]' - "$work/runs"
mapfile -t systems < <(sed 's/^{"system":"\([^"]*\)".*/\1/' "$work/runs")
for ((i = 0; i < ${#systems[@]}; i += 2)); do
    "$RUNNEL" paper diff "${systems[i]}" "${systems[i + 1]:-simple}" --count 20 --json
    echo ,
done >"$work/pairs" 2>"$work/err"
for pair in "pm bip" "vmmc lfc" "fm2 unet"; do
    read -r -a two <<<"$pair"
    "$RUNNEL" paper diff "${two[@]}" --size 4096 --count 10 --json
    echo ,
done >"$work/long" 2>>"$work/err"
check "stages add up to each latency, to the picosecond, and to what run measures, of all systems" \
    python3 - "$work" <<'END'
import json, sys
runs = {r["system"]: r["value"] for r in map(json.loads, open(sys.argv[1] + "/runs"))}
seen = set()
for name, count in (("pairs", 20), ("long", 10)):
    for d in json.loads("[%s null]" % open("%s/%s" % (sys.argv[1], name)).read())[:-1]:
        for k, side in enumerate(d["sides"]):
            assert side["messages"] == 2 * count and side["machine"] == "H-PP", side
            assert sum(s["ps"][k] for s in d["stages"]) == side["ps"], (side, d["stages"])
            assert abs(side["ps"] / 1e6 / side["messages"] - side["one_way_us"]) < 1e-6, side
            if d["bytes"] == 4:
                assert abs(side["one_way_us"] / runs[side["system"]] - 1) < 1e-5, (side, runs[side["system"]])
                seen.add(side["system"])
assert seen == set(runs), set(runs) - seen
END
check "each part of the way has its time: no system's card, transfers or wire are taken for a wait" python3 - "$work" <<'END'
import json, sys
for d in json.loads("[%s null]" % open(sys.argv[1] + "/pairs").read())[:-1]:
    for k, side in enumerate(d["sides"]):
        of = {}
        for s in d["stages"]:
            of[s["at"], s["where"]] = of.get((s["at"], s["where"]), 0) + s["ps"][k]
        for part in (("sender", "host"), ("sender", "bus"), ("sender", "card"), ("receiver", "wire"), ("receiver", "card")):
            bare = side["system"] in ("fm1-link", "fm1-bus") # without a library
            # a card that works while the packet comes takes no time of its own, if nothing at the receiver waits for it
            meanwhile = part == ("receiver", "card") and not of.get(("receiver", "wait")) and side["receiver_instructions"] > 0
            assert of.get(part, 0) > 0 or (bare and part[1] == "host") or meanwhile, (side["label"], part, of)
        waits = sum(v for (_, where), v in of.items() if where == "wait")
        assert waits < side["ps"] / 2, (side["label"], waits / side["ps"])
END
"$RUNNEL" paper diff simple vmmc >"$work/two"
for pair in "simple vmmc" "pm bip" "am2 lfc" "fm1 fm2" "fmmc unet"; do
    read -r -a two <<<"$pair"
    "$RUNNEL" paper diff "${two[@]}" --count 20
done >"$work/some"
check "stages as printed come to what run prints, to the last digit" python3 - "$work" <<'END'
import json, re, sys
runs = {r["system"]: r["value"] for r in map(json.loads, open(sys.argv[1] + "/runs"))}
parts = re.split(r"^ +(\S+) +(\S+) difference$", open(sys.argv[1] + "/some").read(), flags=re.M)
assert len(parts) == 16, len(parts)
for a, b, text in zip(parts[1::3], parts[2::3], parts[3::3]):
    inner = [l.split()[-3:] for l in text.split("\n") if re.match(r"  \S.* [+-][\d.]+$", l)]
    for k, system in enumerate((a, b)):
        said = "%.3f" % (sum(round(1000 * float(v[k])) for v in inner) / 1000)
        assert abs(float(said) - runs[system]) < 0.00051, (system, said, runs[system])
END
"$RUNNEL" paper matrix --json >"$work/matrix.json"
check "as printed, stages add up to their part, parts to one way, and the difference is of what stands there" \
    python3 - "$work" <<'END'
import json, re, sys
text = open(sys.argv[1] + "/two").read()
lines = [(m[1], m[2].strip(), [round(1000 * float(v)) for v in m[3].split()]) for m in
         re.finditer(r"^(  )?(\S.*?) +((?:[\d.]+ +){2}[+-][\d.]+)$", text[:text.index("\nFor each")], re.M)]
assert len(lines) > 25, lines
for _, name, (a, b, difference) in lines:
    assert b - a == difference, (name, a, b, difference)
parts = [v for inner, name, v in lines if not inner]
for k in (0, 1, 2):
    assert sum(v[k] for v in parts[:-1]) == parts[-1][k], (k, parts)
    assert sum(v[k] for inner, _, v in lines if inner) == parts[-1][k], k
one = None
for inner, name, v in lines:
    if not inner:
        assert one is None or one == [0, 0, 0] , (name, one)
        one = list(v)
    else:
        one = [x - y for x, y in zip(one, v)]
m = {r["system"]: r for r in json.load(open(sys.argv[1] + "/matrix.json"))}
count = {l[:40].strip(): [float(v) for v in l[40:].split()[:2]] for l in text[text.index("\nFor each"):].split("\n")[2:] if l}
for k, s in enumerate(("simple", "vmmc")):
    assert abs(m[s]["one_way_us"] - parts[-1][k] / 1000) < 0.0006, s
    assert count["instructions of the sender's card"][k] == m[s]["sender_instructions"], s
    assert count["instructions of the receiver's card"][k] == m[s]["receiver_instructions"], s
    # 4 bytes: a copy into the area of the simple protocol's sender, none of VMMC's
    assert count["bytes that hosts copy in their memory"][k] == (4, 0)[k] and count["interrupts of both hosts"][k] == 0
    assert count["bytes over both I/O buses"][k] >= 8, count
END
check "one system: as it is beside one change, and one change beside another" bash -c '
    "$0" paper diff bip --set dma_setup=0 --count 20 --json >"$1/one" && "$0" paper run bip --count 20 --json >>"$1/one" &&
    "$0" paper run bip --set dma_setup=0 --count 20 --json >>"$1/one" &&
    "$0" paper diff fm1 --set store=0.2 --set store=0.4 --count 20 --json >"$1/both" &&
    "$0" paper run fm1 --set store=0.2 --count 20 --json >>"$1/both" &&
    "$0" paper run fm1 --set store=0.4 --count 20 --json >>"$1/both" && python3 -c "
import json, sys
for name, labels in ((\"one\", [\"as it is\", \"dma_setup=0\"]), (\"both\", [\"store=0.2\", \"store=0.4\"])):
    d, end = json.JSONDecoder().raw_decode(open(sys.argv[1] + \"/\" + name).read())
    runs = [json.loads(l) for l in open(sys.argv[1] + \"/\" + name).read()[end:].split()]
    assert [s[\"label\"] for s in d[\"sides\"]] == labels
    assert d[\"sides\"][0][\"machine\"] == runs[0][\"machine\"]
    for side, run in zip(d[\"sides\"], runs):
        assert abs(side[\"one_way_us\"] / run[\"value\"] - 1) < 1e-5, (side, run)
    assert abs(d[\"sides\"][0][\"ps\"] - d[\"sides\"][1][\"ps\"]) > 1e6
" "$1"' "$RUNNEL" "$work"
is_usage "one system without a change" "two systems, or one with --set" paper diff bip
is_usage "three changes" "there is 3 of --set" paper diff bip --set store=1 --set load=1 --set page=4096
is_usage "three systems" "one argument too many" paper diff bip pm vmmc
is_usage "a system that is not there" "no system 'amoeba'" paper diff bip amoeba
is_usage "what sends no messages" "cannot be measured" paper diff bip probe
is_usage "a size that one of them cannot send" "takes whole words, 4 to" paper diff bip am2 --size 65536
exit "$failed"
