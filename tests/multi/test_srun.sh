#!/usr/bin/env bash
# Jobs that srun starts on two hosts, which are network namespaces with a slurmd each: Slurm serves PMIx. All of Slurm
# that runs here is of this test, with state, keys and sockets in its folder.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"

for command in slurmctld slurmd srun munged; do
    if ! command -v $command >/dev/null; then
        echo "$command is not installed (slurm-wlm, slurm-wlm-basic-plugins, munge)"
        exit 77
    fi
done
if ! grep -q PMIx_Init "$build"/src/librunnel.a; then
    echo 'built without PMIx (libpmix-dev)'
    exit 77
fi
hosts_up 2
a=$name-1 b=$name-2
daemons=()
# shellcheck disable=SC2317 # when the test ends
stop() {
    local p i
    for p in "${daemons[@]}"; do
        kill -TERM "$p" 2>/dev/null
    done
    for ((i = 0; i < 100; i++)); do
        kill -0 "${daemons[@]}" 2>/dev/null || break
        sleep 0.05
    done
    for p in "${daemons[@]}"; do
        kill -KILL "$p" 2>/dev/null
    done
    clean_up
}
trap stop EXIT

chmod 755 "$dir"
mkdir state d.n1 d.n2 tmp.n1 tmp.n2 munge
chmod 700 munge
head -c 1024 /dev/urandom >munge/key
chmod 600 munge/key
munged -F -f --num-threads=1 --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" >munge.out 2>&1 &
daemons+=($!)
cat >slurm.conf <<END
ClusterName=t
SlurmctldHost=n1(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/d.%n
SlurmctldPidFile=$dir/ctld.pid
SlurmdPidFile=$dir/d.%n.pid
SlurmctldLogFile=$dir/ctld.log
SlurmdLogFile=$dir/d.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=pmix
ReturnToService=2
TmpFS=$dir/tmp.%n
NodeName=n1 NodeAddr=10.77.0.1 CPUs=2 State=UNKNOWN
NodeName=n2 NodeAddr=10.77.0.2 CPUs=2 State=UNKNOWN
PartitionName=p Nodes=n1,n2 Default=YES State=UP
END
export SLURM_CONF=$dir/slurm.conf
unset RUNNEL_FD
in_host() { # K COMMAND...
    local k=$1
    shift
    # shellcheck disable=SC2016 # the inner shell is to see it
    exec nsenter --net="/run/netns/$name-$k" unshare -u sh -c 'hostname "$0" && exec "$@"' "n$k" "$@"
}
start() { # K COMMAND...
    in_host "$@" >"$2.$1.out" 2>&1 &
    daemons+=($!)
}
start 1 slurmctld -D
start 1 slurmd -D -N n1
start 2 slurmd -D -N n2
for ((i = 0; i < 200; i++)); do
    [ "$(in_host 1 sinfo -h -o '%T %D' 2>sinfo.said)" = 'idle 2' ] && break
    sleep 0.1
done
job() { # OPTION... PROGRAM ARGUMENT...
    timeout -k 5 60 nsenter --net="/run/netns/$a" unshare -u sh -c 'hostname n1 && exec "$@"' x srun --mpi=pmix "$@"
}
# shellcheck disable=SC2016 # the ranks' shell is to see it
if ! job -N2 -n4 sh -c 'echo "$PMIX_RANK on $(hostname)"' >said 2>&1 </dev/null || [ "$(grep -c 'on n2' said)" != 2 ]; then
    echo "slurm does not start jobs in namespaces here: $(cat said sinfo.said munge.out ./*.out ./*.log 2>/dev/null |
        grep -iE 'error|fatal|failed|cannot' | head -n 3 | tr '\n' ' ')"
    exit 77
fi
echo 'leak:libpmix' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
left() { # ranks: the daemons of Slurm stay
    local i n
    for ((i = 0; i < 60; i++)); do
        n=
        for h in "$a" "$b"; do
            n+=$(ip netns pids "$h" | while read -r p; do
                grep -xE 'hello|multi-.*' "/proc/$p/comm" 2>/dev/null
            done)
        done
        [ -z "$n" ] && return 1
        sleep 0.05
    done
    echo "left: $n" >>said
    return 0
}

job -N2 -n4 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 4' said | sort | tr '\n' ' ')" = 'rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 ' ] &&
    ! left
ok 'ranks on two hosts find their places' $?
job -N2 -n4 -m cyclic "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! left
ok 'messages, ranks dealt in turn' $?
job -N1 -n2 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! left
ok 'one host' $?
# Slurm ends a job in which a process is killed before it has left PMIx; what is left to us is that nothing stays.
job -N2 -n4 "$build/tests/multi-kill_rank" stuck 1 3 >said 2>&1 </dev/null &
job=$!
ranks_on "$b" 2
sleep 0.5
kill -KILL "${ranks[1]:-$job}"
! wait $job && ! left
ok 'a rank is killed: nothing is left' $?
exit "$failed"
