#!/usr/bin/env bash
# The examples in Orca give the known answers on several ranks, on one host and over datagrams, however their objects are placed; and
# what a program says when a rank dies or a process waits in vain. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
# NAME PATTERN ARGUMENT...: a job that ends well and says the pattern.
says() {
    local name=$1 pattern=$2
    shift 2
    run "$@" && grep -q -- "$pattern" said
    ok "$name" $?
}

for program in micro tsp asp leq sor water ida bodies; do
    compiles "$tree/examples/orca/$program.imp" -O1
done
for transport in auto udp; do
    for n in 1 2 3 8; do
        says "leq on $n ranks, $transport" '^iterations 413 x1 0.00841149 ' --transport $transport -n $n ./leq 60
        says "tsp on $n ranks, $transport" '^length 211 route 0 ' --transport $transport -n $n ./tsp 13
        says "asp on $n ranks, $transport" '^n 96 checksum 423294 ' --transport $transport -n $n ./asp 96
        says "sor on $n ranks, $transport" '^iterations 152 ' --transport $transport -n $n ./sor 40 40
        says "water on $n ranks, $transport" '^mols 64 kinetic 2.90163e-06 ' --transport $transport -n $n ./water 64 10
        says "micro on $n ranks, $transport" '^final 100 200' --transport $transport -n $n ./micro 100
        says "ida on $n ranks, $transport" '^moves 34 solutions 1 nodes 123500$' --transport $transport -n $n ./ida 60 1
        says "bodies on $n ranks, $transport" 'energy -0.561622 first 0.210419 0.0341234$' --transport $transport -n $n ./bodies 200 20
    done
done
says '300 equations take 2070 iterations on 2 ranks' '^iterations 2070 ' -n 2 ./leq 300
compiles "$tree/tests/orca/programs/large.imp" -O1
for mode in '' '-p 1 -no-strategy' '-p 2 -no-strategy' '-without layers' '-without copies'; do
    for transport in auto udp; do
        # shellcheck disable=SC2086 # words
        says "values longer than a message, $transport $mode" '^sums 300001 300002 7$' --transport $transport -n 3 ./large $mode
    done
done
# Datagrams that are lost, doubled and overtaken change no answer.
export RNL_FAULT=loss=2%,dup=1%,reorder=2%:1ms
says 'leq with faults' '^iterations 413 x1 0.00841149 ' --transport udp -n 3 ./leq 60
says 'tsp with faults' '^length 211 route 0 ' --transport udp -n 3 ./tsp 13
says 'sor with faults' '^iterations 152 ' --transport udp -n 3 ./sor 40 40
says 'ida with faults' '^moves 34 solutions 1 nodes 123500$' --transport udp -n 3 ./ida 60 1
says 'bodies with faults' 'energy -0.561622 first 0.210419 0.0341234$' --transport udp -n 3 ./bodies 200 20
unset RNL_FAULT
for mode in '-p 1' '-p 2' '-static' '-dynamic' '-p 2 -no-strategy' '-p 1 -no-strategy' '-dynamic -no-strategy'; do
    # shellcheck disable=SC2086 # words
    {
        says "leq, $mode" '^iterations 413 x1 0.00841149 ' -n 3 ./leq $mode 60
        says "tsp, $mode" '^length ' -n 3 ./tsp $mode 11
        says "sor, $mode" '^iterations 152 ' -n 3 ./sor $mode 40 40
        says "water, $mode" '^mols 64 kinetic 2.90163e-06 ' -n 3 ./water $mode 64 10
        says "micro, $mode" '^final 100 200' -n 3 ./micro $mode 100
    }
done
for saving in switches layers pieces copies; do
    says "leq without what saves $saving" '^iterations 413 x1 0.00841149 ' -n 3 ./leq -without $saving 60
    says "water without what saves $saving" '^mols 64 kinetic 2.90163e-06 ' -n 3 ./water -without $saving 64 10
    says "bodies without what saves $saving" 'energy -0.561622 first 0.210419 0.0341234$' -n 2 ./bodies -p 1 -no-strategy -without $saving 200 20
done
run -n 2 ./micro -without nothing
[ $? = 2 ] && grep -q 'switches, layers, pieces or copies was expected after -without' said
ok "what cannot be left out is told" $?

# A rank with the only copy of an object is killed: the job ends at once with one sentence that names both.
compiles "$tree/tests/orca/programs/dies.imp" -O1
dies() { # VICTIM LOST OPTION TRANSPORT
    : >said # what the last one said is not what is waited for
    "$runnel" run --timeout $limit "$3" --transport "$4" -n 3 ./dies >said 2>&1 </dev/null &
    job=$!
    while ! grep -q '^ready' said && kill -0 $job 2>/dev/null; do sleep 0.05; done
    seen=
    for pid in $(pgrep -x dies); do
        [ "$(readlink "/proc/$pid/exe")" = "$dir/dies" ] || continue
        for _ in $(seq 100); do
            "$runnel" info --pid "$pid" >state 2>/dev/null
            if grep -q "^  object ready" state; then break; fi
            sleep 0.1
        done
        seen+=$(grep -E '^  (object [oar]|process Orca)' state | sed 's/, [0-9]* reads.*blocked//')$'\n'
        if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "RUNNEL_RANK=$1"; then
            victim=$pid
        fi
    done
    kill -9 "$victim"
    wait $job
    grep -q '^  object o (IntObject): here, owned by cpu 2; Strategy says so$' <<<"$seen" &&
        [ "$(grep -c '^  object row\[6\] (IntObject): .* cpu 2; Strategy says so$' <<<"$seen")" = 3 ] &&
        [ "$(grep -c '^  object all (IntObject): at all cpus, managed by cpu 0; Strategy says so$' <<<"$seen")" = 3 ] &&
        grep -q '^  process OrcaMain waits in AwaitValue of object all (IntObject), .*/dies.imp:35$' <<<"$seen"
    ok "runnel info shows each object and who waits, $3, $4" $?
    [ "$(grep '^cpu .* died' said)" = "cpu $1 died of signal 9, and the program ends: lost with it are the objects $2" ]
    ok "the death of rank $1 is told once, $3, $4" $?
}
for option in --stopped-after=60 --keep-going; do
    for transport in auto udp; do
        dies 2 'o (IntObject), row[6] (IntObject)' $option $transport
        dies 0 'row[5] (IntObject), ready (barrier)' $option $transport
    done
done
"$runnel" run --timeout 2 -n 3 ./dies >said 2>&1 </dev/null
[ $? = 124 ] && ! grep -q ' died' said
ok 'a job that is ended has nobody that died' $?
compiles "$tree/tests/orca/programs/stuck.imp" -O1
for argument in '' everywhere; do
    run -n 3 ./stuck $argument
    grep -q 'stuck.imp:20: local deadlock: AwaitValue of the object o (IntObject) blocks, and no other process can reach it$' said
    ok "a wait that nobody can end is told ${argument:-at the owner}" $?
done
exit "$failed"
