#!/usr/bin/env bash
# Several virtual hosts: the same programs over the virtual network, whole or losing packets, and always the same run.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-token.so" "$vprocs/vproc-hello.so" "$vprocs/vproc-heat.so" "$vprocs/vproc-poll.so" \
    "$vprocs/vproc-sort.so" "$vprocs/vproc-all.so"

tokens() { # ranks, steps, options...: everything arrives, once
    local ranks=$1 steps=$2
    shift 2
    timeout 120 "$runnel" sim -n "$ranks" "$@" "$vprocs/vproc-token.so" "$steps" >said 2>&1 ||
        { echo "# status $?: $(tail -n 2 said | tr '\n' ' ')"; return 1; }
    [ "$(grep -c ': right, ' said)" = "$ranks" ] && awk -v want=$((ranks * steps)) '/^rank/ { n += $4 } END { exit n != want }' said
}

tokens 8 20 --hosts 8; ok "8 hosts" $?
cp said calm
tokens 8 20 --hosts 8 && cmp -s said calm; ok "... the same in each run" $?
tokens 8 20 --hosts 3; ok "hosts of several ranks" $?
for loss in 0.1% 1% 5%; do
    tokens 8 50 --hosts 8 --loss $loss; ok "$loss of the packets are lost, and no message" $?
done
rough=0
for seed in 1 2 3 4 5 6 7 8; do
    tokens 6 20 --hosts 6 --seed $seed --fault loss=2%,dup=2%,reorder=5%:100us,corrupt=1%,cut=1% ||
        { rough=1; echo "# seed $seed"; }
done
ok "losses, doubles, wrong bytes and a wrong order, 8 seeds" $rough
tokens 8 20 --hosts 8 --loss 5% && cp said first && tokens 8 20 --hosts 8 --loss 5% && cmp -s said first
ok "what is lost is the same in each run" $?
tokens 1000 10 --hosts 1000 --loss 1%; ok "1,000 hosts" $?

everybody() { # hosts, rounds, options...: each sends each two messages a round; vproc_all.c says what came, if it is not that
    local hosts=$1 rounds=$2
    shift 2
    if ! timeout 300 "$runnel" sim -n "$hosts" --hosts "$hosts" --speed "$@" "$vprocs/vproc-all.so" 2 "$rounds" >said 2>speed ||
        [ "$(wc -l <said)" != 1 ]; then
        echo "# $(head -n 2 said)"
        return 1
    fi
    sed -n 's/^runnel: /# /p' speed
}
spent() { # microseconds, packets, switches: the last of `everybody` took no more
    awk -v us="$1" -v packets="$2" -v switches="$3" '
        /^runnel: .* events, hash/ { took = 1e6 * $2 }
        /of processor time/ { for (i = 2; i <= NF; i++) { if ($i ~ /^packets/) p = $(i - 1); if ($i ~ /^switches/) s = $(i - 1) } }
        END {
            printf "# %d us, %d packets, %d switches\n", took, p, s
            exit !(took > 0 && p > 0 && s > 0 && took <= us && p <= packets && s <= switches)
        }' said speed
}
everybody 64 1; ok "64 hosts, each to each" $?
# The same figures in each run, and on each machine: 258, 24222 and 9843. A call into the network for each peer, not
# for each round of them: 469, 31635 and 24200. What was read told in packets of its own: 272, 31137 and 10872. A HELLO
# beside the first packet that says as much: 263, 27733 and 10191.
spent 350 26000 15000; ok "... in so much time, by so many packets and so many turns" $?
# 1044, 12067 and 11060; with that HELLO 1034, 12380 and 10965, of which 156, 1856 and 1372 were the first round.
# Acknowledgements that do not wait for company: 1067, 19939 and 11834.
everybody 16 20; ok "16 hosts, each to each, again and again" $?
spent 1300 13500 13000; ok "... with company for most acknowledgements" $?
everybody 48 1 --loss 1%; ok "48 hosts, each to each, losing packets" $?

for hosts in 1 2; do
    timeout 60 "$runnel" sim -n 2 --hosts $hosts "$vprocs/vproc-poll.so" >said 2>&1 && grep -qx '20 notes, woken for them' said &&
        grep -qx 'rank 0 slept' said && ! grep -q WRONG said
    ok "an event loop sleeps in poll, and is woken by what comes from $([ $hosts = 1 ] && echo its host || echo another host)" $?
done
"$runnel" sim -n 4 --hosts 4 --trace trace.pcapng "$vprocs/vproc-hello.so" >said && "$runnel" sim decode trace.pcapng >lines &&
    grep -q 'HELLO rank' lines && grep -q ' DATA ' lines
ok "the packets are traced, and can be read" $?
"$runnel" sim -n 4 --hosts 4 "$vprocs/vproc-hello.so" >said.2 && [ "$(hash_of said)" = "$(hash_of said.2)" ]
ok "a trace changes nothing" $?

"$runnel" sim -n 1 "$vprocs/vproc-heat.so" --make 64x48 start.pgm >/dev/null &&
    "$runnel" sim -n 1 "$vprocs/vproc-heat.so" start.pgm -n 100 -o one.pgm >/dev/null &&
    timeout 120 "$runnel" sim -n 5 --hosts 5 --loss 1% "$vprocs/vproc-heat.so" start.pgm -n 100 -o five.pgm >/dev/null &&
    cmp -s one.pgm five.pgm
ok "heat over five hosts is heat on one" $?

awk 'BEGIN { x = 1; for (i = 0; i < 20000; i++) { x = (x * 16807) % 2147483647; print x, i % 7 } }' >input
LC_ALL=C sort input >expected
for hosts in 2 5; do
    rm -f output
    timeout 120 "$runnel" sim -n 5 --hosts $hosts --loss 2% "$vprocs/vproc-sort.so" input -o output >/dev/null &&
        cmp -s output expected
    ok "sort sorts on 5 ranks of $hosts hosts" $?
done

cat >scenario <<'END'
at 2ms rate all 100Mb/s
at 4ms delay 1 500us
at 5ms partition 0-2
at 25ms heal
at 30ms block 3 4
at 40ms unblock 3 4
at 45ms down 5
at 55ms up 5
at 60ms stall 2 5ms
END
tokens 8 60 --hosts 8 --scenario scenario && tail -n 1 said >first && tokens 8 60 --hosts 8 --scenario scenario &&
    tail -n 1 said | cmp -s - first
ok "a network that falls apart and heals again loses no message" $?

differ=0
for step in 1 2 4 8 16 24 32 48 64 80 96; do
    echo "crash 3 step $step" >scenario
    if ! timeout 60 "$runnel" sim -n 8 --hosts 8 --keep-going --scenario scenario "$vprocs/vproc-token.so" 20 >said 2>&1 ||
        [ "$(grep -c ': right, ' said)" != 7 ]; then
        differ=1
        echo "# step $step: $(tail -n 2 said)"
    fi
done
ok "a rank crashes at any step, and those of other hosts finish" $differ
exit "$failed"
