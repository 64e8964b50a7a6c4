#!/usr/bin/env bash
# Ranks that access each other's windows as a seed says, on hosts of the virtual cluster whose network loses, repeats, delays and spoils
# packets, or is apart for a while: each access did what it says, and a quiet says what is true.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-onesided.so"
seeds=${RNL_ONESIDED_SEEDS:-3} # of each network

onesided() { # ranks, seed, options...: all that was done is as it has to be
    local ranks=$1 seed=$2
    shift 2
    timeout 100 "$runnel" sim -n "$ranks" --seed "$seed" "$@" "$vprocs/vproc-onesided.so" "$seed" >said 2>&1
    local status=$?
    [ $status = 0 ] && [ "$(grep -c ': as it has to be;' said)" = "$ranks" ] && return 0
    echo "# runnel sim -n $ranks --seed $seed $* vproc-onesided.so $seed: status $status, $(grep -v 'as it has' said | head -n 2)"
    return 1
}
all() { # NAME, ranks, options...
    local name=$1 worse=0 seed
    shift
    for seed in $(seq "$seeds"); do
        onesided "$1" "$seed" "${@:2}" || worse=1
    done
    ok "$name" $worse
}

cat >disaster <<'END'
at 5ms partition 0
at 60ms heal
at 70ms stall 1 30ms
at 90ms off 2
at 140ms on 2
END
all 'ranks of one host' 3 --hosts 1
all 'hosts whose network loses a packet in five' 4 --hosts 2 --loss 20%
all 'hosts whose network repeats, delays and spoils packets' 5 --hosts 5 --fault 'loss=5%,dup=10%,reorder=20%:2ms,corrupt=1%'
all 'hosts that are apart, stand still and are off' 6 --hosts 3 --loss 2% --scenario disaster
mv said first
onesided 6 "$seeds" --hosts 3 --loss 2% --scenario disaster && cmp said first
ok '... the same in each run' $?
exit "$failed"
