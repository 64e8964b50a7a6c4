#!/usr/bin/env bash
# Ranks that die and come back: dead until they are taken back, then as new, and nothing of the old ones is delivered.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-am_return.so" "$vprocs/vproc-return.so" "$vprocs/vproc-wrong.so" "$vprocs/vproc-token.so"

back() { # milliseconds, scenario, options...: all four end well
    local ms=$1
    printf '%s\n' "$2" >scenario
    shift 2
    timeout 60 "$runnel" sim -n 4 --keep-going --scenario scenario "$@" "$vprocs/vproc-return.so" "$ms" >said 2>&1
    local status=$?
    [ $status = 0 ] && [ "$(grep -c ': right, ' said)" = 4 ] && return 0
    echo "# status $status; $* $(tr '\n' ';' <scenario) $(head -n 3 said | tr '\n' ' ')"
    return 1
}
told() { # deaths and returns of rank 0
    grep -qx "rank 0: right, $1 deaths, $2 returns" said || { echo "# $(grep '^rank 0' said)"; return 1; }
}

for hosts in 1 2 4; do
    back 20 'at 5ms crash 1 restart 2ms' --hosts $hosts && told 1 1
    ok "a rank comes back to $hosts hosts, and is told of once" $?
done
back 20 'at 5ms crash 1 restart 2ms' --hosts 4 && cp said first && back 20 'at 5ms crash 1 restart 2ms' --hosts 4 &&
    cmp -s said first
ok "... the same in each run" $?

worse=0
for step in $(seq 1 2 70); do
    back 20 "crash 1 step $step restart 100us" --hosts 4 || worse=1
done
ok "it dies at any step, those of its handshakes included, and comes back at once" $worse
worse=0
for step in $(seq 2 4 70); do
    back 40 "delay all 2ms
crash 1 step $step restart 100us
at 9ms crash 2 restart 300us" --hosts 4 || worse=1
done
ok "... while packets of its earlier life are still flying" $worse
worse=0
for step in $(seq 2 6 70); do
    back 20 "crash 1 step $step restart 100us" --hosts 2 || worse=1
done
ok "... with some of the others on its own host" $worse
worse=0
for seed in $(seq 6); do
    for hosts in 2 4; do
        back 60 'at 2ms crash 1-2 restart 1ms
at 6ms crash 1 restart 100us
at 8ms crash 3 restart 4ms
at 9ms crash 1 restart 10us' --hosts $hosts --seed "$seed" \
            --fault loss=5%,dup=2%,reorder=5%:100us,delay=0us..500us || worse=1
    done
done
ok "several die again and again over a bad network" $worse

back 60000 'at 50us partition 0-1
at 50s heal' --hosts 4 && told 2 2
ok "who was only not heard, and lives, can be taken back" $?

echo 'at 2ms crash 3 restart 1ms' >scenario
"$runnel" sim -n 4 --keep-going --scenario scenario "$vprocs/vproc-token.so" 20 >said 2>&1
grep -q '^a rank was started again, with everything as at first' said && [ "$(grep -c ': right, ' said)" = 3 ]
ok "a program that knows nothing of it is not joined by one started again" $?

# ---- AM-2 between ranks that die and come back: vproc_am_return.c says what has to be so ----

am_back() { # milliseconds, scenario, options...: all four end well
    local ms=$1
    printf '%s\n' "$2" >scenario
    shift 2
    timeout 60 "$runnel" sim -n 4 --keep-going --scenario scenario "$@" "$vprocs/vproc-am_return.so" "$ms" >said 2>&1
    local status=$?
    [ $status = 0 ] && [ "$(grep -c ': right, ' said)" = 4 ] && return 0
    echo "# status $status; $* $(tr '\n' ';' <scenario) $(head -n 3 said | tr '\n' ' ')"
    return 1
}

for hosts in 1 2 4; do
    am_back 20 'at 5ms crash 1 restart 2ms' --hosts $hosts && grep '^rank 0' said >first &&
        grep -q 'right, 1 returns' first && ! grep -qE ' 0 (answered|by old names)' first
    ok "a process on $hosts hosts is a new one when it comes back, and its old names lead nowhere" $?
    [ ! -f first ] || sed 's/^/# /' first
    am_back 30 "at 5ms crash 1 restart 2ms
at 12ms crash 1 restart 2ms
at 15ms crash 2 restart 1ms" --hosts $hosts && grep -q '^rank 0: right, 3 returns' said
    ok "... and again" $?
    for life in 1 2; do
        [ $hosts = 1 ] || sed -nE "s/^return $life of rank 1: (.*) had come back/\1/p" said | grep -qv '^0$'
        ok "... and what was under way when it died, the $life. time, comes back" $?
    done
done
worse=0
for step in $(seq 2 6 60); do
    am_back 15 "crash 1 step $step restart 100us" --hosts $((1 + step % 4)) || worse=1
done
ok "it dies at any step, and comes back at once" $worse
worse=0 lost=0
for seed in $(seq 4); do
    am_back 40 'at 2ms crash 1-2 restart 1ms
at 6ms crash 1 restart 100us
at 8ms crash 3 restart 4ms
at 9ms crash 1 restart 10us' --hosts $((2 + seed % 2 * 2)) --seed "$seed" \
        --fault loss=5%,dup=2%,reorder=5%:100us,delay=0us..500us || worse=1
    lost=$((lost + $(sed -nE 's/.* ([0-9]+) unreached.*/\1+/p' said | tr -d '\n')0))
done
ok "several die again and again over a bad network" $worse
echo "# $lost requests came back"
[ "$lost" -gt 0 ]
ok "... and requests were on their way to them" $?
exit "$failed"
