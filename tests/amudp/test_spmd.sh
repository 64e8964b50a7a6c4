#!/usr/bin/env bash
# Programs written for AMUDP as jobs: each way to start them, output, exit codes, environment, collectives; and known
# faults of AMUDP that show only between processes (w1 ...). Each case has a deadline.
# shellcheck disable=SC2016,SC2317 # commands for the workers' shell; functions that are arguments
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
program=$build/tests/amudp-spmd
export TMPDIR=$dir
export PATH=$build/tools:$PATH
for name in SPAWNFN NETWORKDEPTH FAULT_RATE CSPAWN_CMD; do unset "$name" "AMUDP_$name" "GASNET_$name"; done
limit=60
grep -qE '__(asan|tsan)_init' "$program" && limit=240

status=0
run() { # COMMAND...: leaves out, err and $status
    status=0
    timeout -k 5 "$limit" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}
is() { [ "$status" = "$1" ]; }
says() { grep -qxF -- "$1" "$dir/out"; }
lines() { [ "$(grep -cE -- "$2" "$dir/$1")" = "$3" ]; }

# ---- starting ----
for n in 1 2 5; do
    run "$program" "$n" L messages
    check "$n workers, each kind of message, as its own master" is 0
done
run "$program" 4 l gathers
check "gathers of up to 100,000 bytes, 4 workers" is 0
run "$program" 7 L gathers
check "... 7 workers" is 0
run "$program" 3 L gathers-threads
check "... 3 workers, with threads that poll meanwhile" is 0
run "$program" 6 L barrier "$dir/barrier"
check "nobody leaves a barrier before all have come" is 0
WHAT_THE_MASTER_HAS="a b" run "$program" 3 L print
check "output and errors of all workers come out at the master" lines out '^rank [012] of 3 has a b and 2 arguments$' 3
check "... each on its own" lines err '^errors of rank [012]$' 3
AMUDP_SPAWNFN=L run "$program" 2 print
check "the environment says how to spawn" lines out '^rank [01] of 2 has nothing and 2 arguments$' 2
GASNET_SPAWNFN=L AMUDP_SPAWNFN=X run "$program" 2 print
check "... GASNet's prefix before AMUDP's" is 0
run "$runnel" run -n 3 "$program" print
check "the same program under runnel run" lines out '^rank [012] of 3 has nothing and 2 arguments$' 3
run amudprun -np 2 "$program" print
check "amudprun starts it" lines out '^rank [01] of 2 has nothing and 2 arguments$' 2
run amudprun -np 2 -spawn L -depth 5 "$program" messages
check "... with options" is 0
run "$program"
check "without a number of workers it says how to start it" grep -q '^usage: .* WORKERS' "$dir/err"
check "... and fails" is 1
run "$program" 2 S print
check "ssh without hosts is an error that names the setting" grep -q 'SSH_SERVERS' "$dir/err"
silent() { # ARGUMENT...: a program that does not ask for errors to be printed
    SILENT=1 run "$program" "$@"
}
silent 2 S print
check "... also where errors are not printed" grep -q '^AMUDP: the job does not start: .*SSH_SERVERS' "$dir/err"
silent 2 C print
check "a custom spawner without a command names the setting" grep -q 'could not be started: CSPAWN_CMD' "$dir/err"
AMUDP_SPAWNFN=Q silent 2 print
check "a way of spawning that there is not is told" grep -q 'SPAWNFN names no way of spawning' "$dir/err"
check "... with those that there are" lines err '^  SPAWN [SLC]  ' 3
check "... and fails" is 1
for rate in 1.5 abc -1 0x; do
    AMUDP_FAULT_RATE=$rate silent 2 L print
    check "FAULT_RATE=$rate is refused" grep -qF "FAULT_RATE is '$rate': set it to" "$dir/err"
done
AMUDP_FAULT_RATE=abc run "$runnel" run -n 2 "$program" print
check "... also by workers that another starts" grep -q "FAULT_RATE is 'abc': set it to" "$dir/err"
AMUDP_NETWORKDEPTH=many silent 2 L print
check "a number that is none is told, and what is taken" grep -q "NETWORKDEPTH is 'many', not a number from 1 to 1024: taken as 128" "$dir/err"
run amudprun --help
check "amudprun --help" lines out '^usage: amudprun|-spawn|-depth D|--help' 6
check "... succeeds" is 0
run amudprun --np 2 --nonsense
check "an option that there is not is named" grep -q "there is no option '--nonsense'" "$dir/err"
check "... with status 64" is 64

cat >"$dir/ssh" <<'EOF'
#!/usr/bin/env bash
# In the place of ssh: options, a host, a command, which it executes here.
while [ "${1#-}" != "$1" ]; do shift; done
echo "$1" >>"$0.hosts"
shift
exec sh -c "$*"
EOF
chmod +x "$dir/ssh"
WHAT_THE_MASTER_HAS="a b" SSH_SERVERS="one; two" SSH_CMD="$dir/ssh" run "$program" 4 S print
check "ssh: workers on each host of the list" lines out '^rank [0123] of 4 has a b and 2 arguments$' 4
check "ssh: ... by the command that is given" test "$(sort "$dir/ssh.hosts" | tr '\n' ' ')" = "one two "
SSH_SERVERS="one two" SSH_CMD="$dir/ssh" run "$program" 2 S exit 3
check "ssh: exit codes" is 3

# ---- ends ----
run "$program" 3 L exit 5
check "the exit code of the worker that ends the job is the master's" is 5
check "... and each worker's exit callback is called" lines out 'the job ends with 5$' 3
run "$program" 3 L exit 0
check "a job can be ended with code 0" is 0
check "... and each worker hears of it" lines out 'the job ends with 0$' 3
check "... and ends by what it has set to end it" lines out 'ends itself with 0$' 3
run "$program" 4 L control 0
check "also where it only looks for that" lines out 'the job ends with 0$' 4
for code in 0 6; do
    run "$program" 3 L exit-threads "$code"
    check "threads that poll and end the job at once end it with $code" is "$code"
    check "... once in each worker" lines out "the job ends with $code\$" 3
done
for how in short long reply 0; do
    for code in 0 6; do
        run "$program" 5 L exit-in "$how" "$code"
        check "a handler ($how) can end the job with $code" is "$code"
        check "... and each worker hears of it" lines out "the job ends with $code\$" 5
    done
done
run "$program" 3 L exit-in waiting 6
check "a handler can end a job whose worker waits for a stuck one" is 6
# It leaves without closing anything: no place to look for leaks.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 run "$program" 3 L return
check "a worker that returns from main gives its status" is 7
run "$program" 3 L killed
check "a worker that is killed ends the job" is 134

# ---- custom spawning ----
SPAWNS_ITSELF=1 WHAT_THE_MASTER_HAS=there run "$program" print
check "a spawner of the program's own, and output at the master" lines out '^rank [012] of 3 has there and 2 arguments$' 3
SPAWNS_ITSELF=1 run "$program" messages
check "... each kind of message" is 0
export CSPAWN_CMD='for i in $(seq %N); do %C & done; wait'
run "$program" 3 C messages
check "custom: workers by a command" is 0
CSPAWN_ROUTE_OUTPUT=1 WHAT_THE_MASTER_HAS=there run "$program" 3 C print
check "custom: output goes to the master if it is to" lines out '^rank [012] of 3 has there and 2 arguments$' 3
CSPAWN_ROUTE_OUTPUT=1 CSPAWN_CMD="for i in \$(seq %N); do env -i PATH=\$PATH %C & done; wait" \
    WHAT_THE_MASTER_HAS=there run "$program" 2 C print
check "custom: the master's environment is known where the worker's is empty" lines out 'has there' 2
run "$program" 3 C exit 6
check "custom: exit codes" is 6
run "$program" 3 C killed
check "custom: a worker that is killed ends the job" is 1
CSPAWN_CMD='for i in $(seq 0 2); do MY_RANK=$i %C & done' run "$program" 3 C setproc
check "custom: a worker chooses its rank; its parent may be gone" is 0
CSPAWN_CMD='exit 3' run "$program" 3 C print
check "custom: a command that fails ends the job" grep -q 'status 3' "$dir/err"
check "custom: no key is left behind" test -z "$(find "$dir" -name 'amudp-key*')"

# ---- what AMUDP does wrong ----
# w8: its environment goes to whoever connects first, its tags can be guessed.
touch "$dir/talks"
cat >"$dir/look.sh" <<EOF
sleep 0.5
tr '\0' '\n' </proc/\$1/environ >$dir/environ
tr '\0' '\n' </proc/\$1/cmdline >$dir/cmdline
for p in \$(pgrep -f "$dir/talks"); do tr '\0' '\n' </proc/\$p/environ >>$dir/environ; done
cp $dir/amudp-key* $dir/key
stat -c %a $dir/amudp-key* >$dir/mode
rm $dir/talks
EOF
CSPAWN_CMD='for i in $(seq %N); do %C & done; sh '"$dir"'/look.sh $PPID; wait' run "$program" 2 C talk "$dir/talks"
if [ -s "$dir/key" ]; then
    check "w8: the key's file is nobody else's" grep -qx 600 "$dir/mode"
    check "w8: no secret in the environment or the arguments" python3 - "$dir" <<'PYTHON'
import sys
d = sys.argv[1]
key = open(d + "/key", "rb").read()
for name in ("environ", "cmdline"):
    text = open(d + "/" + name, "rb").read()
    sys.exit("in " + name) if key[:8] in text or key[:8].hex().encode() in text else None
PYTHON
else
    check "w8: the key's file is seen while the job runs" false
fi
run "$program" 3 L w8
check "w8: each worker has a tag of its own that nobody can guess" lines out '^tag [0-9a-f]{16}$' 3
sort "$dir/out" >"$dir/tags"
run "$program" 3 L w8
check "... others in the next job" test "$(sort "$dir/out" "$dir/tags" | uniq -d | wc -l)" = 0

# w1: a datagram of no bytes stops AMUDP for good; w2: one that is longer than any message ends its job at once.
cat >"$dir/strange.py" <<'PYTHON'
import os, random, socket, sys, time
# Datagrams of all sorts to each UDP port of the processes that execute this program with this argument.
def ports():
    found, inodes = set(), set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if sys.argv[1].encode() not in open("/proc/%s/cmdline" % pid, "rb").read() or int(pid) == os.getpid():
                continue
            for fd in os.listdir("/proc/%s/fd" % pid):
                at = os.readlink("/proc/%s/fd/%s" % (pid, fd))
                if at.startswith("socket:["):
                    inodes.add(at[8:-1])
        except OSError:
            continue
    for table in ("udp", "udp6"):
        for line in open("/proc/net/" + table).readlines()[1:]:
            words = line.split()
            if words[9] in inodes:
                found.add((table, int(words[1].split(":")[1], 16)))
    return found
until, sent, all_ports = time.time() + 20, 0, set()
while not all_ports and time.time() < until:
    all_ports = ports()
    time.sleep(0.02)
time.sleep(0.2)
all_ports |= ports()
random.seed(5)
for turn in range(40):
    for table, port in all_ports:
        s = socket.socket(socket.AF_INET if table == "udp" else socket.AF_INET6, socket.SOCK_DGRAM)
        for n in (0, 0, 1, 24, 65100, 65507, random.randrange(2000)):
            try:
                s.sendto(os.urandom(n), ("127.0.0.1" if table == "udp" else "::ffff:127.0.0.1", port))
                sent += 1
            except OSError:
                pass
        s.close()
time.sleep(0.2)
os.unlink(sys.argv[1])
print("sent %d to %d ports" % (sent, len(all_ports)))
PYTHON
touch "$dir/talks"
python3 "$dir/strange.py" "$dir/talks" >"$dir/strange" &
stranger=$!
run "$runnel" run --transport udp -n 2 "$program" talk "$dir/talks"
wait "$stranger"
sed 's/^/# /' "$dir/strange"
check "w1, w2: datagrams of 0 to 65,507 bytes from strangers change nothing" is 0
check "... and reached the ports of the job" grep -qE '^sent [0-9]{3,} to [1-9]' "$dir/strange"
run "$runnel" run --transport udp -n 3 "$program" messages
check "each kind of message between hosts" is 0
AMUDP_FAULT_RATE=0.2 REQUESTTIMEOUT_INITIAL=1000 run "$program" 2 L messages
check "FAULT_RATE between workers of one host" is 0
AMUDP_FAULT_RATE=0.9999 limit=2 run "$program" 2 L messages
check "... it is packets that are lost: with nearly all of them nothing gets through" is 124
AMUDP_FAULT_RATE=0.2 REQUESTTIMEOUT_INITIAL=1000 run "$runnel" run -n 2 "$program" messages
check "... over shared memory" is 0
AMUDP_FAULT_RATE=0.2 REQUESTTIMEOUT_INITIAL=1000 run "$runnel" run --transport udp -n 2 "$program" messages
check "... and over datagrams" is 0

# What each peer more costs: what is there once for a process, whoever it talks to, is left out.
of_one() { # CASE LAUNCHER...: in $kb
    local few many
    run "$runnel" run "${@:2}" -n 2 "$program" "$1"
    few=$(sed -nE 's/^(-?[0-9]+) kB$/\1/p' "$dir/out")
    run "$runnel" run "${@:2}" -n 5 "$program" "$1"
    many=$(sed -nE 's/^(-?[0-9]+) kB$/\1/p' "$dir/out")
    kb=$(((${many:-999999} - ${few:-0}) / 3))
    echo "# $*: $few kB with one peer, $many kB with four: $kb kB a peer"
}
if [ "$limit" = 60 ]; then
    of_one w4
    check "w4: 128 replies of 65,000 bytes take at most 256 kB a peer (AMUDP: 8,200)" test "$kb" -le 256
    of_one w4 --transport udp
    check "... and over datagrams" test "$kb" -le 256
fi
run taskset -c 0 "$program" 2 L w5
sed 's/^/# /' "$dir/out"
check "w5: two that poll on one core give way to each other" is 0
cat >"$dir/many.py" <<'PYTHON'
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
for i in range(1100):
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
os.execv(sys.argv[1], sys.argv[1:])
PYTHON
run python3 "$dir/many.py" "$program" 2 L messages
check "w14: descriptors beyond 1,024 are no different from others" is 0
limit=$((limit * 3)) run "$program" 40 L gathers
check "w14: barrier and gather of 40 workers go by no master" is 0
run "$build/tests/amudp-exit-twice" 5 L
check "word of the end goes on by way of a worker that ends the job itself meanwhile" is 0
run "$runnel" run --keep-going -n 4 "$program" w15
check "w15: the others go on when a worker dies" lines out '^rank [023] goes on$' 3
exit "$failed"
