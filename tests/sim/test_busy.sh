#!/usr/bin/env bash
# Who always finds something of a rank of its own host still keeps the times of its links to others.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$guests/guest-busy.so"

busy() { # options...: all is answered, within half a second each, without a look in vain, which would keep times by itself
    timeout 60 "$runnel" sim -n 3 --hosts 2 "$@" "$guests/guest-busy.so" 100 >said 2>&1 &&
        awk '/answers, the slowest/ { good = $1 == 100 && $6 < 500000 && $8 == 0 } END { exit !good }' said && return 0
    echo "# $*: $(tr '\n' ';' <said)"
    return 1
}

busy; ok "beside a busy rank of the same host another host answers" $?
for seed in 1 2 3 4; do
    busy --loss 10% --seed $seed; ok "... and what the network loses is sent again, seed $seed" $?
done
exit $failed
