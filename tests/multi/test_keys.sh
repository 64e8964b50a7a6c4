#!/usr/bin/env bash
# The key of a job lies only in memory that no core dump contains, in every process of the job: the memory of all of them is
# searched for what the ranks' pages for keys have in common.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
needs_commands python3
cd "$dir" || exit 1
# As the installed library is bound: else the first call of each function saves vector registers, of whatever copied last.
export LD_BIND_NOW=1

cat >search.py <<'END'
import os, sys
from pathlib import Path

KEY = 32


def areas(pid):
    """Yields (whether core dumps leave it out, its bytes) of each private writable area."""
    found, writable = [], False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        word = line.split()
        if "-" in word[0] and not word[0].endswith(":"):
            begin, end = (int(x, 16) for x in word[0].split("-"))
            writable = word[1].startswith("rw-p")
        elif word[0] == "VmFlags:" and writable:
            found.append(("dd" in word[1:], begin, end))
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for hidden, begin, end in found:
            memory.seek(begin)
            try:
                yield hidden, memory.read(end - begin)
            except OSError:
                pass


def windows(pid):
    """The 32-byte strings of the hidden areas that can be keys: what is not random repeats its bytes."""
    keys = set()
    for hidden, text in areas(pid):
        if hidden:
            for at in range(0, len(text) - KEY + 1, 4):
                if text[at] | text[at + 1] | text[at + 2] and len(set(text[at:at + KEY])) > 24:
                    keys.add(text[at:at + KEY])
    return keys


def below(pid):
    children = [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]
    return [pid] + [q for p in children for q in below(p)]


pids = below(int(sys.argv[1]))
ranks = [p for p in pids if Path(f"/proc/{p}/comm").read_text().startswith(sys.argv[2])]
keys = set.intersection(*(windows(p) for p in ranks))
print(f"{len(pids)} processes, {len(ranks)} ranks, {len(keys)} keys")
for p in pids:
    for hidden, text in areas(p):
        if not hidden and any(k in text for k in keys):
            print(f"{Path(f'/proc/{p}/comm').read_text().strip()} would dump the key")
END

# job NAME OPTION...: two ranks that hold the close up
job() {
    local name=$1 k pid
    shift
    : >said
    timeout -k 5 60 "$runnel" run --timeout 50 -n 2 "$@" "$build/tests/multi-run_joiner" ready >said 2>&1 </dev/null &
    local waits=$!
    for ((k = 0; k < 400; k++)); do
        [ "$(grep -c 'ready$' said)" = 2 ] && break
        sleep 0.05
    done
    pid=$(pgrep -P "$waits" | head -n 1)
    python3 search.py "$pid" multi-run_join >found 2>&1
    kill "$pid"
    wait "$waits"
    grep -qE '^[0-9]+ processes, 2 ranks, [1-9][0-9]* keys$' found && ! grep -q dump found
    ok "$name" $?
    [ -s found ] && sed 's/^/# /' found
}
job 'no core dump contains the key of a job'
job 'no core dump contains the key of a job with datagrams' --transport udp
exit "$failed"
