#!/usr/bin/env bash
# Ranks that die and come back: dead until they are taken back, then as new, and nothing of the old ones is delivered.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$guests/guest-return.so" "$guests/guest-wrong.so" "$guests/guest-token.so"

back() { # milliseconds, scenario, options...: all four end well
    local ms=$1
    printf '%s\n' "$2" >scenario
    shift 2
    timeout 60 "$runnel" sim -n 4 --keep-going --scenario scenario "$@" "$guests/guest-return.so" "$ms" >said 2>&1
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
"$runnel" sim -n 4 --keep-going --scenario scenario "$guests/guest-token.so" 20 >said 2>&1
grep -q '^a rank was started again, with everything as at first' said && [ "$(grep -c ': right, ' said)" = 3 ]
ok "a program that knows nothing of it is not joined by one started again" $?
exit $failed
