#!/usr/bin/env bash
# What others on the machine can do to a job of custom spawning: squat the names that it uses, use up the descriptors of
# who listens, find the key of a master that was killed.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
program=$build/tests/amudp-spmd
chmod 711 "$dir"
export TMPDIR=$dir PATH=$build/tools:$PATH
for name in SPAWNFN NETWORKDEPTH FAULT_RATE CSPAWN_CMD MASTERIP; do unset "$name" "AMUDP_$name" "GASNET_$name"; done
key_file() { # waits for it
    local i
    for ((i = 0; i < 200; i++)); do
        key=$(find "$dir" -name 'amudp-key*' -size +0)
        [ -n "$key" ] && return 0
        sleep 0.05
    done
    return 1
}

cat >"$dir/squat.py" <<'PYTHON'
import os, re, socket, subprocess, sys, time
# squat.py COMMAND...: another user, who sees arguments and names of files, binds each name that a rank may come to use.
command = sys.argv[1:]
names = set(re.findall(r"amudp-[0-9A-Za-z-]+", " ".join(command)))
ready, told = os.pipe()
squatter = os.fork()
if squatter == 0:
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    kept = []
    for name in names:
        for rank in range(8):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                s.bind("\0%s.%d" % (name, rank))
                s.listen(8)
                kept.append(s)
            except OSError:
                pass
    os.write(told, b"x")
    while True:
        time.sleep(1)
os.read(ready, 1)
workers = [subprocess.Popen(command) for i in range(3)]
code = max(w.wait() for w in workers)
os.kill(squatter, 9)
sys.exit(code)
PYTHON
CSPAWN_CMD="timeout 15 python3 $dir/squat.py %C" timeout -k 5 20 "$program" 3 C messages >"$dir/said" 2>&1 </dev/null
ok 'another user who binds the names that can be foreseen does not stop a job' $?

# A master that waits for workers; the listener may be in it or in its launcher.
CSPAWN_CMD='sleep 15' timeout -k 5 40 "$program" 1 C print >"$dir/said" 2>&1 </dev/null &
job=$!
key_file
port=$(grep -aoE 'master 127.0.0.1 [0-9]+' "$key" | cut -d' ' -f3)
cat >"$dir/flood.py" <<'PYTHON'
import os, resource, socket, sys, time
# flood.py PORT: uses up the descriptors of who listens there; how busy is that process then?
hex_port, inodes = "%04X" % int(sys.argv[1]), set()
for table in ("tcp", "tcp6"):
    for line in open("/proc/net/" + table).readlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[1].endswith(":" + hex_port):
            inodes.add("socket:[%s]" % words[9])
def listens(pid):
    try:
        return any(os.readlink("/proc/%s/fd/%s" % (pid, fd)) in inodes for fd in os.listdir("/proc/%s/fd" % pid))
    except OSError:
        return False
pid = [int(p) for p in os.listdir("/proc") if p.isdigit() and listens(p)][0]
taken = {int(fd) for fd in os.listdir("/proc/%d/fd" % pid)}
most = 2 + min(n for n in range(1000) if n not in taken) # the next descriptor has the lowest free number
resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
calls = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for i in range(40)]
def ticks():
    return sum(int(t) for t in open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[11:13])
before = ticks()
time.sleep(1.5)
busy = ticks() - before
print("busy for %d ticks of 150" % busy)
sys.exit(busy > 30)
PYTHON
timeout 60 python3 "$dir/flood.py" "$port" >"$dir/said" 2>&1
ok "who listens does not spin when it has no descriptor for a caller" $?
sed 's/^/# /' "$dir/said"
master=$(pgrep -P "$job")
kill -KILL "$master"
{ wait "$job"; } 2>/dev/null
for ((i = 0; i < 60; i++)); do
    [ -z "$(find "$dir" -name 'amudp-key*')" ] && break
    sleep 0.05
done
find "$dir" -name 'amudp-key*' >"$dir/said"
[ ! -s "$dir/said" ]
ok 'a master that is killed leaves no key behind' $?
exit "$failed"
