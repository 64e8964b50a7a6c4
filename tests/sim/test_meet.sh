#!/usr/bin/env bash
# Processes that nobody started together meet on the virtual cluster: by the daemons of the virtual hosts, on one and between several,
# while packets are lost, processes and daemons are killed, and hosts are apart. Each visits the one that serves, puts into its window,
# adds to a word of it and hears an echo; all visits are made in the end.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-meet.so"

meets() { # ranks, visits, service, options...: all visits are made
    local ranks=$1 visits=$2 service=$3
    shift 3
    timeout 60 "$runnel" sim -n "$ranks" "$@" "$vprocs/vproc-meet.so" "$ranks" "$visits" "$service" >said 2>&1
    local status=$?
    [ $status = 0 ] && grep -qx 'server: all visits, all told' said && [ "$(grep -c ": $visits visits\$" said)" = $((ranks - 1)) ] && return 0
    echo "# status $status; $* $(tail -n 3 said | tr '\n' ' ')"
    return 1
}

meets 6 5 counter
ok 'processes of one host meet, part, and meet again' $?
meets 4 5 counter@host0 --hosts 4
ok 'so do those of several hosts' $?
meets 4 2 counter@host9 --hosts 4 --timeout 2 >/dev/null
grep -q "there is no virtual host host9: they are host0 to host3" said
ok 'a host that there is not is named' $?

worse=0
for seed in 1 2 3 4 5 6 7 8; do
    meets 6 5 counter@host0 --hosts 3 --loss 5% --seed $seed && ! grep '^rank .*:.* [^0-9]*$' said | grep -v ' visits$' || worse=1
done
ok 'losses only delay them: no visit fails, with any seed' $worse

cat >disaster <<'END'
at 60ms crash 2+3 restart 10ms
at 80ms daemon 0
at 90ms crash 4 step 300 restart 5ms
at 100ms daemon all
at 200ms partition 1
at 1s heal
at 1200ms crash 5 step 77 restart 1ms
at 1300ms daemon 0-2
END
worse=0
for seed in 1 2 3 4 5; do
    meets 6 40 counter@host0 --hosts 3 --loss 5% --keep-going --scenario disaster --seed $seed || worse=1
done
ok 'processes and daemons that are killed, and a partition, too' $worse
mv said first
meets 6 40 counter@host0 --hosts 3 --loss 5% --keep-going --scenario disaster --seed 5 && cmp -s said first
ok '... the same in each run' $?

meets 6 40 counter@host0 --hosts 3 --loss 5% --keep-going --scenario disaster --seed 14
ok 'a process that ends while the daemons of both hosts are gone is missed later' $?
worse=0
for ms in 74 88 102; do
    printf 'at %sms daemon 1\nat %sms crash 1 step 5 restart 3ms\n' $ms $ms >other
    meets 2 100 counter@host0 --hosts 2 --keep-going --scenario other --seed $ms || worse=1
done
ok 'so is one that ends after the daemon of its own host' $worse

worse=0
for step in $(seq 1 6 400); do
    echo "at 50ms crash 1 step $step restart 3ms" >step
    meets 3 2 counter@host0 --hosts 2 --keep-going --scenario step --seed "$step" || worse=1
    meets 3 2 counter --keep-going --scenario step --seed "$step" || worse=1
done
ok 'who comes dies at any step, and comes again' $worse
worse=0
for step in $(seq 1 4 180); do # before the first visit is over: what the server knew of visits dies with it
    echo "at 2ms crash 0 step $step restart 3ms" >step
    meets 3 1 counter@host0 --hosts 2 --keep-going --scenario step --seed "$step" || worse=1
done
ok 'so does who serves' $worse

exit "$failed"
