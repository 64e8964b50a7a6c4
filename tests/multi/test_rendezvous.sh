#!/usr/bin/env bash
# Ranks that the launcher did not start (runnel run --wait-for): joining by hand, on one host and on two, and what goes
# wrong: too many, a wrong key, callers that say nothing, no descriptors, deaths on the way, a launcher that is killed.
# shellcheck disable=SC1091,SC2154,SC2030,SC2031 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"
joined=$build/tests/multi-joined
export TMPDIR=$dir
unset RUNNEL_RENDEZVOUS RUNNEL_FD
alive() { kill -0 "$1" 2>/dev/null; }
written() { # FILE: within 20 s it has something in it
    local i
    for ((i = 0; i < 400; i++)); do
        [ -s "$1" ] && return 0
        sleep 0.05
    done
    return 1
}
until_says() { # FILE PATTERN COUNT
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(grep -cE -- "$2" "$1" 2>/dev/null)" -ge "$3" ] && return 0
        sleep 0.05
    done
    return 1
}
launch() { # N OPTION...: leaves $launcher, its process; what it says is in `said`
    local n=$1
    shift
    rm -f meet go rank.*
    : >said
    timeout -k 5 60 "$runnel" run --wait-for "$n" --rendezvous meet "$@" >said 2>&1 </dev/null &
    job=$!
    written meet
    launcher=$(pgrep -P "$job")
}
status_of() { # PROCESS
    status=0
    { wait "$1"; } 2>/dev/null || status=$?
}
join() { # NAME ARGUMENT...: in the background; what it says is in rank.NAME
    local it=$1
    shift
    RUNNEL_RENDEZVOUS=meet timeout -k 5 60 "$joined" "$@" >"rank.$it" 2>&1 </dev/null &
    pids[it]=$!
}
pids=()

# ---- four by hand, one of them late and stopped for a while ----
launch 4
[ "$(stat -c %a meet)" = 600 ] && [ "$(sed -n 2p meet)" = 'runnel-rendezvous 3' ] && grep -qE '^master [^ ]+ [0-9]+$' meet && grep -qx "agent $(realpath "$runnel")" meet
ok 'the file is nobody else'"'"'s, and text' $?
"$runnel" run --wait-for 2 --rendezvous meet >other 2>&1
[ $? = 71 ] && grep -q 'belongs to a job that runs' other
ok 'a file that another job uses is not taken' $?
for k in 1 2 3; do join "$k" "$dir/go"; done
sleep 0.3
kill -STOP "$(pgrep -P "${pids[1]}")"
join 4 "$dir/go"
sleep 0.3
cat >thief.py <<'PYTHON'
import os, re, socket, sys
# Another process asks for each place, at each socket of an agent, with proofs that are none; and one of another user
# connects, which must be hung up on before it says anything.
names = {line.split()[-1][1:] for line in open("/proc/net/unix") if re.search(r" @[0-9a-f]{64}$", line)}
got = b""
def call(name, text):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(3)
    try:
        s.connect("\0" + name)
        if text:
            s.send(text)
        return s.recv(100)
    except ConnectionError:
        return b""
    except OSError:
        return b"" if text else b"it waits"
for name in names:
    for rank in range(5):
        for proof in (bytes(32), os.urandom(32), b""):
            got += call(name, b"j\0" + rank.to_bytes(4, "little") + proof)
if os.getuid() == 0:
    os.setuid(65534)
    for name in names:
        got += call(name, b"")
print(len(names), got)
sys.exit(not names or got != b"")
PYTHON
timeout 60 python3 thief.py >thief
r=$?
ok "a place is for who has the key, and for this user alone ($(cat thief))" $r
kill -CONT "$(pgrep -P "${pids[1]}")"
until_says rank.1 'of 4' 1
RUNNEL_RENDEZVOUS=meet "$joined" >extra 2>&1
[ $? = 3 ] && grep -q 'all 4 ranks of this job have come: this process is one too many' extra
ok 'one too many is refused, and told why' $?
EXIT=0 touch go
for k in 1 2 3 4; do status_of "${pids[k]}"; done
status_of "$job"
[ "$status" = 0 ] && [ "$(cat rank.[1-4] | grep -c '^closed$')" = 4 ] && [ "$(cat rank.[1-4] | grep '^rank' | sort -u | wc -l)" = 4 ]
ok 'four processes that were started by hand are a job' $?
[ ! -e meet ]
ok 'its file is removed' $?

launch 2
RUNNEL_RENDEZVOUS=$(cat meet) "$joined" >rank.1 2>&1 &
EXIT=5 join 2
status_of "$job"
[ "$status" = 5 ] && grep -q 'exited with status 5' said
ok 'its content in the variable does as well; an exit code is the job'"'"'s' $?

# ---- strangers ----
launch 2
sed "1s/.*/$(printf 'ab%.0s' {1..32})/" meet >wrong
chmod 600 wrong
RUNNEL_RENDEZVOUS=wrong timeout 60 "$joined" >refused 2>&1
[ $? = 3 ] && grep -q 'it has another key' refused
ok 'who has another key is refused, and told so' $?
cp meet open && chmod 644 open
RUNNEL_RENDEZVOUS=open "$joined" >rank.1 2>&1
[ $? = 3 ] && grep -q 'nobody else can read' rank.1
ok 'a file that others can read is refused' $?
cat >flood.py <<'PYTHON'
import os, socket, sys, time
# flood.py PORT PROCESS N: N callers that say nothing, or half of what they should. How busy is the launcher, beside a process that
# never sleeps? One that spins gets as much of the processor, whatever else runs.
port, pid, n = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def ticks(pid):
    return sum(int(t) for t in open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[11:13])
calls = []
for i in range(n):
    s = socket.create_connection(("127.0.0.1", port))
    if i % 2:
        s.send(b"half a message"[: i % 14])
    calls.append(s)
spins = os.fork()
if spins == 0:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass
    os._exit(0)
before, end = ticks(pid), time.monotonic() + 50
while ticks(spins) < 100 and time.monotonic() < end:
    time.sleep(0.05)
busy, whole = ticks(pid) - before, ticks(spins)
os.kill(spins, 9)
print("busy for %d ticks, while one that spins had %d" % (busy, whole))
sys.exit(busy > 10 + whole // 3)
PYTHON
port=$(sed -nE 's/^master .* ([0-9]+)$/\1/p' meet | head -n 1)
timeout 60 python3 flood.py "$port" "$launcher" 180 >flood
r=$?
ok "callers that say nothing keep nobody busy ($(cat flood))" $r
for k in 1 2; do join "$k"; done
status_of "$job"
[ "$status" = 0 ]
ok '... and those with the key join all the same' $?

launch 1
free=0 # the number that the next descriptor would have: it is to have none, not even for a caller that it drops at once
while [ -e "/proc/$launcher/fd/$free" ]; do free=$((free + 1)); done
prlimit --pid "$launcher" --nofile="$free:"
timeout 60 python3 flood.py "$(sed -nE 's/^master .* ([0-9]+)$/\1/p' meet | head -n 1)" "$launcher" 60 >flood
r=$?
ok "without a free descriptor it looks again after pauses ($(cat flood))" $r
prlimit --pid "$launcher" --nofile=200:
kill -TERM "$launcher"
status_of "$job"
[ "$status" = 143 ] && [ ! -e meet ]
ok 'a signal ends the wait, and the file' $?

# ---- deaths ----
launch 2
for wait in 0.5 1 2 4 8; do # who dies before it has joined is nobody
    join 1
    sleep "$wait"
    kill -KILL "$(pgrep -P "${pids[1]}")"
    until_says said 'that had joined has ended before the job began: waiting for 2 more' 1 && break
done
[ "$(grep -c 'that had joined has ended before the job began: waiting for 2 more' said)" = 1 ]
ok 'a joiner that dies before the job begins is reported' $?
for k in 2 3; do join "$k" "$dir/go"; done
until_says rank.2 'of 2' 1
kill -KILL "$(pgrep -P "${pids[2]}")"
status_of "$job"
[ "$status" = 1 ] && grep -q 'ended without an exit code' said
ok 'one that is killed later ends the job' $?
status_of "${pids[3]}"

launch 2
join 1
sleep 1 # it waits for its place then
stopped=$(pgrep -P "${pids[1]}")
kill -STOP "$stopped" # so that it has its place, but does not take it
join 2
sleep 0.5
kill -KILL "$stopped"
status_of "$job"
[ "$status" = 1 ] && grep -q 'ended on the way to its place in the job; ending it' said
ok 'one that is killed on the way to its place ends the job' $?
status_of "${pids[2]}"

launch 2
for k in 1 2; do join "$k" "$dir/go"; done
until_says rank.1 'of 2' 1
until_says rank.2 'of 2' 1
cp -p meet left
kill -KILL "$launcher"
status_of "$job"
sleep 0.3
alive "${pids[1]}" && alive "${pids[2]}"
ok 'when the launcher is killed, who joined lives on' $?
touch go
for k in 1 2; do status_of "${pids[k]}"; done
[ "$(cat rank.[12] | grep -c 'close: RNL_ERR_JOB')" = 2 ]
ok '... and is told RNL_ERR_JOB' $?
for ((i = 0; i < 60; i++)); do
    [ -e meet ] || break
    sleep 0.05
done
[ ! -e meet ]
ok 'a launcher that is killed leaves no file behind' $?
cp -p left meet
"$runnel" run --wait-for 1 --rendezvous meet >other 2>&1
[ $? = 71 ] && grep -q 'left over from a launcher that is gone: remove it' other
ok 'a file that was left over is recognised' $?

launch 3 --timeout 6 # far longer than one takes to come
join 1
status_of "$job"
[ "$status" = 124 ] && grep -q 'only 1 of 3 processes had joined after 6 s' said
ok 'a job that nobody joins ends with --timeout' $?

# ---- two hosts ----
hosts_up 2
rm -f meet go
ip netns exec "$name-1" timeout -k 5 60 "$runnel" run --wait-for 4 --rendezvous meet >said 2>&1 </dev/null &
job=$!
written meet
for k in 1 2 3 4; do
    RUNNEL_RENDEZVOUS=meet ip netns exec "$name-$((k % 2 + 1))" timeout 60 "$joined" "$dir/go" >"rank.$k" 2>&1 </dev/null &
done
for k in 1 2 3 4; do until_says "rank.$k" 'of 4' 1; done
touch go
status_of "$job"
[ "$status" = 0 ] && [ "$(cat rank.[1-4] | grep -c '^closed$')" = 4 ] && ! left_over
ok 'four processes on two hosts are a job, and nothing of it stays' $?
exit "$failed"
