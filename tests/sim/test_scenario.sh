#!/usr/bin/env bash
# Scenarios: what a line does, what is said of one that is wrong, and that all of it is the same in each run.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
token=$vprocs/vproc-token.so
needs "$vprocs/vproc-token.so" "$vprocs/vproc-wrong.so"

play() { # status, lines on standard input; arguments of runnel sim before the program
    local want=$1
    shift
    cat >scenario
    timeout 60 "$runnel" sim -n 10 --scenario scenario "$@" "$token" 20 >said 2>&1
    local status=$?
    [ $status = "$want" ] || { echo "# status $status:"; sed 's/^/#   /' said; return 1; }
}
has() { grep -qE -- "$1" said || { echo "# no '$1' in:"; sed 's/^/#   /' said; return 1; }; }

play 0 <<<'# nothing' && cp said calm
ok "an empty scenario changes nothing" $?

play 0 -v --keep-going <<'END' && has 'rank 3 crashed, as the scenario wants' && has 'rank 3 starts again' &&
at 5ms crash 3 restart 2ms   # like kill -9
END
    has '^a rank was started again, with everything as at first' && [ "$(grep -c ': right, ' said)" = 9 ]
ok "a rank crashes and starts again with everything as at first; the others go on" $?
cp said first
cp scenario again
play 0 -v --keep-going <again && cmp -s said first
ok "... the same in each run" $?

play 137 <<<'at 5ms crash 3' && has 'rank 3 was killed by signal 9'
ok "a crash ends the job, as kill -9 would" $?
play 0 --keep-going <<<'at 1ms crash 2-4+7' && [ "$(grep -c ': right, ' said)" = 6 ]
ok "several ranks crash at once" $?

differ=0
for step in $(seq 34); do
    play 0 --keep-going <<<"crash 6 step $step" && [ "$(grep -c ': right, ' said)" = 9 ] || differ=1
    hash_of said >>steps
done
[ $differ = 0 ] && [ "$(sort -u steps | wc -l)" -ge 10 ]
ok "a rank crashes at any step that the library takes, and the others finish" $?

printf 'drift all +0ppm\nat 10ms stall 0 500ms\n' >scenario
"$runnel" sim -n 2 --scenario scenario "$vprocs/vproc-wrong.so" gap >said
[ "$(sed -n 's/^longest sleep \([0-9]*\) us$/\1/p' said)" -ge 500000 ]
ok "no program runs on a host that stalls" $?
play 0 <<<'drift all +100ppm' && [ "$(hash_of said)" != "$(hash_of calm)" ]
ok "clocks drift as they are told" $?

play 0 <<<'late all 300us' && has '^runnel: 0[.][0-9]*[1-9][0-9]* s' && [ "$(hash_of said)" != "$(hash_of calm)" ] && cp said late &&
    play 0 <<<'late all 300us' && cmp -s said late && awk '/^runnel: / { t[FILENAME] = $2 } END { exit !(t["late"] > t["calm"]) }' calm late
ok "programs run late by up to what is told, the same in each run" $?

wrong() { # line, words
    play 64 <<<"$1" && has "^runnel: scenario:1: $2"
    local status=$?
    ok "$(printf %q "$1") is refused with its line" $status
}
wrong 'at 5 crash 3' "at '5': it takes a time"
wrong 'at 5ms' "'at' stands before"
wrong 'crash 10' "'10' names no ranks"
wrong 'crash 1 step 0' "crash: 'step'"
wrong 'crash 1 2 3 4 5 6' 'crash takes: '
wrong 'stall 1 2us' "'1' names no hosts"
wrong 'stall 0 fast' "stall 'fast'"
wrong 'drift 0 101ppm' "drift '101ppm'"
wrong 'late 0 2s' "late '2s': it takes a time"
wrong 'burst all big' "burst 'big'"
wrong 'explode' "there is no verb 'explode'"
wrong 'hosts 0' 'hosts takes a number'
wrong 'link 0 s9' "there is no node 's9'"
wrong 'at 3ms rate all fast' "rate 'fast'"
wrong 'fault all loss=200%' "faults: 'loss=200%'"
wrong 'at 99999999999999s crash 3' "at '99999999999999s': it takes a time like 5ms, at most 184467440s"
wrong 'stall 0 99999999999s' "stall '99999999999s': it takes a time like 5ms, at most"
wrong $'cr\x1b[31mash 3' 'byte 3 is 0x1b: a scenario is a text'
wrong $'at 1ms \xc2\x9b31m 3' 'byte 9 is 0x9b: a scenario is a text'
wrong $'\xff\xfe\x80 3' 'byte 1 is 0xff: a scenario is a text'
play 0 <<<$'# of Z\xfcrich, in Latin-1'
ok "a comment may hold any bytes" $?
# Less than that time, in a small unit.
play 0 <<<'at 300000000ns crash 3'
ok "a time of nine digits of nanoseconds" $?
play 64 --hosts 4 <<<'at 1ms partition 0-1 1+3' && has "^runnel: scenario:1: partition: host 1 is in '0-1' and in '1[+]3'"
ok "a host in two sets of a partition is refused" $?
play 64 < <(printf 'hosts 4\n\nhosts 3\n') && has '^runnel: scenario:3: hosts stands in line 1 already'
ok "hosts stands once" $?
play 64 < <(printf 'hosts 4\nswitches 1\nswitches 2\n') && has '^runnel: scenario:3: switches stands in line 2 already'
ok "switches stands once" $?
play 64 < <(printf 'hosts 4\nswitches 1\nlink 0 s0\nlink 1 s0\nlink 2 s0\n') &&
    has "^runnel: scenario: there is no way from host 3 to host 0.*: a line like 'link 3 s0'"
ok "a host without a link is named" $?
play 64 < <(printf 'hosts 3\nlink 0 1\nlink 1 2\n') && has '^runnel: scenario: there is no way from host [02] to host [02]'
ok "hosts pass nothing on, and that is said" $?
play 0 < <(printf 'hosts 3\nlink 0 1\nlink 1 2\nlink 2 0\n')
ok "hosts can be linked to each other" $?
printf 'crash 3\n\0' >scenario
"$runnel" sim -n 10 --scenario scenario "$token" 20 >said 2>&1
[ $? = 64 ] && has 'scenario is no text: it has a byte 0'
ok "a scenario with a byte 0 is refused whole" $?
RNL_FAULT=loss=1% "$runnel" sim -n 2 "$token" 20 >said 2>&1
[ $? = 64 ] && has "RNL_FAULT is for live jobs: unset it, and say --fault 'loss=1%'"
ok "RNL_FAULT is not ignored" $?
play 64 < <(printf 'hosts 1\n\n# two\nat 1ms crash 1\nat 2ms crush 1\n') && has '^runnel: scenario:5: '
ok "the line of an error is counted" $?
play 64 --hosts 2 <<<'hosts 3' && has 'is for 3 hosts'
ok "a scenario for another number of hosts is refused" $?
"$runnel" sim --scenario no-such-file "$token" >said 2>&1
[ $? = 71 ] && has 'no-such-file'
ok "a scenario that is not there is named" $?
exit "$failed"
