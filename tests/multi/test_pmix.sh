#!/usr/bin/env bash
# Jobs that mpirun starts: programs find their place through PMIx. Prints "ok - name" or "not ok - name"; exits 77 where
# there is no mpirun that serves PMIx, or the build has no support for it.
set -u
build=${RUNNEL_BUILD:?the build directory}
if ! command -v mpirun >/dev/null; then
    echo 'mpirun is not installed (openmpi-bin)'
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export TMPDIR=$dir OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset RUNNEL_FD
# What libpmix and its plugins do not give back is not ours.
echo 'leak:libpmix' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
# shellcheck disable=SC2016 # the ranks' shell is to see it
if ! timeout 60 mpirun -np 1 sh -c 'test -n "$PMIX_RANK"' >said 2>&1 </dev/null; then
    echo "mpirun does not serve PMIx here: $(head -n 1 said)"
    exit 77
fi
if ! grep -q PMIx_Init "$build"/src/librunnel.a; then
    echo 'built without PMIx (libpmix-dev)'
    exit 77
fi
failed=0
ok() { # name status
    if [ "$2" = 0 ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/# /' said 2>/dev/null | cut -c1-300 | head -n 20
        failed=1
    fi
}
job() { # ranks program...
    local n=$1
    shift
    timeout -k 5 60 mpirun -np "$n" "$@"
}
# The agents of jobs of this test: they have its directory in their environment.
agents_left() {
    local i p n
    for ((i = 0; i < 400; i++)); do
        n=
        for p in $(pgrep -x runnel-agent); do
            { tr '\0' '\n' <"/proc/$p/environ"; } 2>/dev/null | grep -qx "TMPDIR=$dir" && n+=" $p"
        done
        [ -z "$n" ] && return 1
        sleep 0.05
    done
    echo "agents left: $n" >>said
    return 0
}

job 3 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 3' said | sort | tr '\n' ' ')" = 'rank 0 of 3 rank 1 of 3 rank 2 of 3 ' ] && ! agents_left
ok 'ranks find their places, and the agent ends with them' $?
job 4 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! agents_left
ok 'messages' $?
job 1 "$build/examples/hello" >said 2>&1 </dev/null && grep -q 'rank 0 of 1' said && ! agents_left
ok 'a job of one' $?
# shellcheck disable=SC2016 # the ranks' shell is to see it
job 3 sh -c 'if [ $PMIX_RANK = 1 ]; then sleep 0.5; fi; exec "$0"' "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -c 'of 3' said)" = 3 ] && ! agents_left
ok 'one that comes late' $?

# mpirun ends a job in which a process is killed; what is left to us is that nothing stays.
timeout -k 5 60 mpirun -np 3 "$build/tests/multi-kill_rank" stuck 1 2 >said 2>&1 </dev/null &
mpirun=$!
for ((i = 0; i < 1200; i++)); do
    mapfile -t ranks < <(pgrep -P "$(pgrep -P $mpirun || echo 1)" -x multi-kill_rank)
    [ ${#ranks[@]} = 3 ] && break
    sleep 0.05
done
sleep 0.3
kill -KILL "${ranks[2]:-$mpirun}"
! wait $mpirun && ! agents_left
ok 'a rank is killed: nothing is left' $?

# Rank 0 ends before the others: the agent that it started serves them on.
job 3 "$build/tests/multi-fm_wrong" took >said 2>&1 </dev/null
! agents_left
ok 'a rank ends before the others' $?

# Strangers at the agent's door, in a network namespace of our own, where no other abstract sockets are.
if command -v perl >/dev/null && unshare -n true 2>/dev/null; then
    cat >strange.pl <<'END'
use Socket;
my %seen;
for (1 .. 150) {
    open my $f, '<', '/proc/net/unix' or die;
    for (<$f>) {
        my @w = split;
        next unless @w == 8 && $w[4] eq '0005' && $w[5] eq '01' && $w[7] =~ /^\@(.*)/;
        for my $what ('', 'x', "\0" x 20, "\xff" x 20, 'y' x 4000) {
            socket(my $s, AF_UNIX, SOCK_SEQPACKET, 0) or die;
            connect($s, pack_sockaddr_un("\0$1")) or next;
            send($s, $what, 0) if length $what;
            push @held, $s;
            $seen{$1} = 1;
        }
    }
    select undef, undef, undef, 0.01;
}
print scalar(keys %seen), "\n";
END
    # shellcheck disable=SC2016 # the inner shell is to see it
    timeout 60 unshare -n sh -c 'ip link set lo up; perl strange.pl >strangers & "$@"; s=$?; wait; exit $s' x \
        mpirun -np 3 sh -c 'if [ $PMIX_RANK = 1 ]; then sleep 0.5; fi; exec "$0" 1 5' "$build/tests/multi-fm_alltoall" \
        >said 2>&1 </dev/null && [ "$(cat strangers)" = 1 ] && ! agents_left
    ok "strangers at the agent's door change nothing" $?
fi
exit $failed
