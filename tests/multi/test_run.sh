#!/usr/bin/env bash
# `runnel run`: exit statuses, output, input, signals, deaths, and that nothing is left behind.
# Bounds in time are generous, for machines that are busy with other things; measured times are printed, not judged.
# Its parts are processes of their own, some at a time, since they wait more than they work.
# Who is killed at random is killed in kill_many.c.
#   test_run.sh               all parts
#   test_run.sh part NAME...  one part, in this process
# shellcheck disable=SC1091,SC2154,SC2016,SC2086,SC2094,SC2317 # test.sh sets them; scripts for other shells in single quotes; $status is a number; functions called through ok
. "$(dirname "$0")/../support/test.sh"
joiner=$build/tests/multi-run_joiner
export RUNNEL_TEST_MARK=$$.$RANDOM # every process we cause has it in its environment
clean_up() {
    marked | while read -r pid _; do kill -9 "$pid"; done
    rm -rf "$dir"
}

host=$(uname -n)
run() { # ARGUMENTS of runnel run; leaves status, $dir/out, $dir/err
    timeout 60 "$runnel" run "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
says() { # FILE TEXT: its only line matches
    [ "$(wc -l <"$1")" -eq 1 ] && grep -qE "$2" "$1"
}
is() { [ "$1" = "$2" ]; }
below() { [ "$1" -lt "$2" ]; }
marked() { # processes that we caused and that still run, but for this script's own
    local pid
    grep -lszxF "RUNNEL_TEST_MARK=$RUNNEL_TEST_MARK" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do
        case $(readlink "/proc/$pid/exe" 2>/dev/null) in
        '' | */bash | */grep | */readlink) ;; # gone, or ours while looking; a wrapper of a test is sh
        *) echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")" ;;
        esac
    done 2>/dev/null
}
none_left() { # within 30 s
    local i
    for ((i = 0; i < 600; i++)); do
        [ -z "$(marked)" ] && return 0
        sleep 0.05
    done
    marked
    return 1
}
children() { # the ranks of a launcher: its agent's children, but for the guard
    local pid agent
    # shellcheck disable=SC2013 # words on one line
    for agent in $(cat /proc/"$1"/task/"$1"/children 2>/dev/null); do
        for pid in $(cat "/proc/$agent/task/$agent/children" 2>/dev/null); do
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = runnel-guard ] || printf '%s ' "$pid"
        done
    done
}
await_lines() { # FILE N: until it has that many lines, at most 60 s
    local i
    for ((i = 0; i < 1200; i++)); do
        [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ] && return 0
        sleep 0.05
    done
    return 1
}
shows() { # FILE PATTERN TIMES: until it is in so many of its lines, at most 60 s
    local i
    for ((i = 0; i < 1200; i++)); do
        [ "$(grep -ac "$2" "$1" 2>/dev/null)" -ge "$3" ] && return 0
        sleep 0.05
    done
    return 1
}
await_exit() { # PID SECONDS: leaves status, ms, and looks: how often it was still there, which does not count a frozen machine
    local from i
    from=$(now_ms)
    for ((i = 0; i < $2 * 50; i++)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.02
    done
    ms=$(($(now_ms) - from)) looks=$i
    if kill -0 "$1" 2>/dev/null; then
        kill -9 "$1"
        { wait "$1"; } 2>/dev/null
        status=hung
        return
    fi
    wait "$1" 2>/dev/null
    status=$?
}
litter() {
    # others may leave runnel-docs-* (a check) and ccRNl* (a compiler) there
    find /dev/shm /tmp -maxdepth 1 \( -name '*runnel*' -o -name 'rnl*' \) ! -name 'runnel-docs-*' 2>/dev/null
    find "$TMPDIR" -mindepth 1 ! -name 'tsan.*' # the thread sanitizer's own, of the killed
}

begin() { # ARGUMENTS: in the background, until every rank said that it is ready; leaves launcher
    local ranks=$1
    shift
    : >"$dir/out"
    : >"$dir/err"
    "$runnel" run -n "$ranks" "$@" >"$dir/out" 2>"$dir/err" </dev/null &
    launcher=$!
    await_lines "$dir/out" "$ranks"
}
complains() { # NAME STATUS TEXT ARGUMENTS...
    local name=$1 want=$2 text=$3
    shift 3
    run "$@"
    check "$name" is "$status $(grep -cE "$text" "$dir/err") $(grep -c '^runnel' "$dir/err")" "$want 1 1"
}

# exit statuses
statuses() {
    run -n 3 true
    check "all 0 is 0, in silence" is "$status$(cat "$dir/out" "$dir/err")" 0
    run -n 3 "$joiner" all
    check "ranks join, connect, close" is "$status$(cat "$dir/err")" 0
    run -n 3 "$joiner" die 1 e2
    check "the status of the first failure" is $status 2
    check "one line names rank, host and status" \
        says "$dir/err" "^runnel: rank 1 on $host exited with status 2; ending the job$"
    run -n 3 "$joiner" die 1 9
    check "killed by a signal: 128 + signal" is $status 137
    check "one line names rank, host and signal" \
        says "$dir/err" "^runnel: rank 1 on $host was killed by signal 9 \(Killed\); ending the job$"
    run -n 4 --keep-going "$joiner" die 2 9
    check "--keep-going: status of the failure at the end" is $status 137
    check "--keep-going: the others learn it and finish" is "$(grep -c 'rank 2 died: why 1 detail 9' "$dir/out")" 3
    check "--keep-going: one line" says "$dir/err" "killed by signal 9.*the others go on"
    run -n 4 "$joiner" die 2 e0
    check "exit 0 without close: a death to the peers, none to the job" \
        is "$status $(grep -c 'rank 2 died: why 2 detail 0' "$dir/out")" "0 3"
    run -n 3 sh -c 'mkdir "$0" 2>/dev/null && exit 0; exec "$1" close' "$dir/lock1" "$joiner"
    check "a rank that ends without joining does not hold the close up" is "$status" 0
    run -n 2 sh -c 'mkdir "$0" 2>/dev/null && exec "$1" close; exec "$1" late 300' "$dir/lock2" "$joiner"
    check "a rank that joins late does" is "$status" 0
    run -n 2 sh -c '"$0" close; exit 5' "$joiner"
    check "a failure after the close is one" is "$status" 5
    from=$(now_ms)
    run -n 3 sh -c 'trap "" TERM
        if mkdir "$0" 2>/dev/null; then sleep 0.5; exit 7; fi
        while :; do sleep 0.1; done' "$dir/lock3"
    ms=$(($(now_ms) - from))
    check "who ignores SIGTERM is killed after 2 s ($ms ms)" is "$status $((ms >= 1900))" "7 1" # they would go on for ever
    run -n 2 sh -c '"$0" close & wait $!; exit 0' "$joiner"
    check "programs below a wrapper join" is "$status" 0
    run -n 2 sh -c 'mkdir "$0" 2>/dev/null || exec "$1" all-for 600
        "$1" ready & sleep 0.3; kill -9 $!; wait; exit 0' "$dir/lock4" "$joiner"
    check "a program that dies below its wrapper does not hold the close up" is "$status" 0
    for how in exec cut; do
        run -n 3 "$joiner" die 1 $how
        check "who does $how with its place in the job is dead for the others, and lives on" \
            is "$status $(grep -c 'that rank 1 died: why 6 ' "$dir/out") $(grep -c replaced "$dir/out")" "0 2 $([ $how = cut ] && echo 0 || echo 1)"
        check "... and is told of" says "$dir/err" '^runnel: rank 1 on .* replaced its program \(exec\), or closed .*dead for the others$'
    done
    run -n 3 "$joiner" garbage
    check "garbage from a rank ends it and not the launcher" is "$status $(grep -c 'wrote garbage' "$dir/err")" "137 1"
    run -n 2 "$joiner" twice
    check "a second open is explained" is "$status $(grep -c '^-66 .*opened once' "$dir/out")" "0 2"
    timeout 60 env --ignore-signal=CHLD "$runnel" run -n 2 sh -c 'exit 3' >"$dir/out" 2>"$dir/err" </dev/null
    check "an ignored SIGCHLD does no harm" is $? 3
    check "no process is left after all that" none_left
}

# the command line and its errors
options() {
    complains "program not found" 127 "no program 'no-such-program' in PATH" -n 3 no-such-program
    complains "found, but its loader fails" 127 "lacks a shared library" -n 1 sh -c 'exit 127'
    complains "path not found" 127 "no program '/no/such/program'" -n 3 /no/such/program
    complains "a directory" 126 "is a directory" -n 3 "$dir"
    echo x >"$dir/plain"
    complains "not executable" 126 "chmod" -n 3 "$dir/plain"
    printf '#!/no/such/interpreter\n' >"$dir/script"
    chmod +x "$dir/script"
    complains "exec fails: said once" 127 "interpreter" -n 5 "$dir/script"
    head -c 5000 /dev/zero >"$dir/zeros"
    printf 'echo from a script\n' >"$dir/bare"
    chmod +x "$dir/bare" "$dir/zeros"
    run -n 2 "$dir/bare"
    check "a script without a first line runs in the shell" is "$status $(grep -c 'from a script' "$dir/out")" "0 2"
    mkfifo "$dir/fifo"
    complains "no file" 126 "no regular file" "$dir/fifo"
    if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        mkdir "$dir/open" "$dir/open/closed"
        cp "$runnel" "$dir/open/runnel"
        printf '#!/bin/sh\n' | tee "$dir/open/closed/script" "$dir/open/script" >/dev/null
        chmod 700 "$dir/open/closed" "$dir/open/script"
        chmod 755 "$dir" "$dir/open" "$dir/open/closed/script"
        other() { setpriv --reuid 65534 --clear-groups "$dir/open/runnel" run "$@" >"$dir/out" 2>"$dir/err" </dev/null; }
        other "$dir/open/closed/script"
        check "in a directory that may not be entered: says so" is "$? $(grep -c 'may not enter a directory on the way' "$dir/err")" "126 1"
        other "$dir/open/script"
        check "another user's: says whose" is "$? $(grep -c 'belongs to user 0: ask' "$dir/err") $(grep -c chmod "$dir/err")" "126 1 0"
    else
        echo "ok - programs of others # SKIP cannot become another user"
    fi
    (PATH=$(printf '/no/such/directory/%s:' {100..120})$PATH && "$runnel" run no-such-program >"$dir/out" 2>"$dir/err")
    check "a long PATH is cut between directories" grep -q 'in PATH (/no[^()]*/1[0-9][0-9]:\.\.\.)' "$dir/err"
    (cd "$dir" && PATH=/bin "$runnel" run bare >"$dir/out" 2>"$dir/err")
    check "a program here and not in PATH: says how" says "$dir/err" 'say ./bare'
    complains "-n 0" 64 "1 to 1024" -n 0 true
    complains "-n 1025" 64 "1 to 1024" -n 1025 true
    complains "-n 5000" 64 "on all its hosts together" -n 5000 true
    "$runnel" run --help >"$dir/out" 2>"$dir/err"
    check "--hosts stands before what does the same from a file" is \
        "$(sed -nE 's/^ +--host(s|file)=.*/\1/p' "$dir/out" | tr '\n' ' ')" "s file "
    complains "-n x" 64 "not 'x'" -n x true
    complains "-n 2x" 64 "not '2x'" -n 2x true
    complains "no such option" 64 "nrecognized option.*--no-such" --no-such true
    complains "no program" 64 "name the program" -n 2
    complains "netns without names" 64 "netns needs the namespaces that are the hosts" --launcher netns -n 2 true
    echo localhost >"$dir/hosts"
    complains "hosts twice" 64 "both name the hosts" --hosts localhost --hostfile "$dir/hosts" true
    printf 'localhost\n\033[31mhost\n' >"$dir/colours"
    complains "a hostfile that is no text" 64 "line 2: byte 1 is 0x1b: this is no text" --hostfile "$dir/colours" true
    printf 'local\xc2\x9bhost # \x9b\n' >"$dir/controls"
    complains "a hostfile with controls of two bytes" 64 "line 1: byte 7 is 0x9b: this is no text" --hostfile "$dir/controls" true
    printf 'local\0host\n' >"$dir/zero"
    complains "a hostfile with a byte 0" 64 "line 1: byte 6 is 0x00: this is no text" --hostfile "$dir/zero" true
    complains "hosts twice, in the other order" 64 "both name the hosts" --hostfile "$dir/hosts" --hosts localhost true
    complains "-np" 64 "given as -n N, not -np N" -np 4 true
    run --np 2 echo x
    check "--np is taken for -n" is "$status $(wc -l <"$dir/out")" "0 2"
    complains "--bind x" 64 "core or none" --bind x true
    complains "--timeout x" 64 "number of seconds" --timeout x true
    complains "--timeout 0" 64 "number of seconds" --timeout 0 true
    complains "-x of nothing" 64 "no such variable" -x NO_SUCH_VARIABLE true
    (ulimit -n 40 && "$runnel" run -n 64 true >"$dir/out" 2>"$dir/err")
    check "too few descriptors: says how many" is "$? $(grep -c 'ulimit -Hn' "$dir/err")" "71 1"
    (ulimit -n 20 && "$runnel" run -n 2 true >"$dir/out" 2>"$dir/err")
    check "too few for one rank: no advice to start none" is "$? $(grep -c 'ulimit -Hn)$' "$dir/err")" "71 1"
    bad=
    for n in 4 5 6 7 8 9 10 11 12; do # of which libuv takes for granted some
        (ulimit -n $n && "$runnel" run -n 1 true >"$dir/out" 2>"$dir/err")
        [ "$? $(grep -c '^runnel: .*\(ulimit\|Too many open files\)' "$dir/err")" = "71 1" ] || bad+="$n "
    done
    check "too few for the launcher itself: says so" is "$bad" ""
    "$runnel" nothing >"$dir/out" 2>"$dir/err"
    check "no such subcommand" is "$? $(grep -c "no subcommand 'nothing'" "$dir/err")" "64 1"
    "$runnel" --nothing >"$dir/out" 2>"$dir/err"
    check "no such option of runnel itself" is "$? $(grep -c "no option '--nothing'; runnel --help lists" "$dir/err")" "64 1"

    run -n 2 -x RUNNEL_TEST_X="a b" -x HOME sh -c 'echo "$RUNNEL_TEST_X"'
    check "-x sets a variable" is "$(cat "$dir/out")" "$(printf 'a b\na b')"
    run -n 1 echo -n 5 --timeout 3
    check "options end at the program" is "$(cat "$dir/out")" "5 --timeout 3"
    run -n 1 -- printf '%s.' -n 5
    check "-- ends them too" is "$(cat "$dir/out")" "-n.5."
    run --bind core -n 4 grep Cpus_allowed_list /proc/self/status
    check "--bind core: one core each" is "$(grep -cE ':\s*[0-9]+$' "$dir/out")" 4
    if [ "$(nproc)" -ge 2 ]; then
        check "--bind core: different ones" below 1 "$(sort -u "$dir/out" | wc -l)"
    fi
    run -n 1 grep Cpus_allowed_list /proc/self/status
    check "--bind none: as we are" is "$(cat "$dir/out")" "$(grep Cpus_allowed_list /proc/self/status)"
    run true
    "$runnel" run --tag-output echo x >"$dir/out"
    check "as many ranks as cores by default" is "$(wc -l <"$dir/out")" "$(nproc)"
    run -n 1 env
    check "only a descriptor and the rank are told through the environment" \
        is "$(sed -n 's/^\(RUNNEL[^=]*\)=.*/\1/p' "$dir/out" | grep -vxE 'RUNNEL(_TEST.*|_BUILD|_SOURCE)?' | sort | tr '\n' ' ')" "RUNNEL_FD RUNNEL_RANK "
    run -n 2 sh -c 'ls -l /proc/$$/fd | grep -c "socket\|memfd\|anon_inode"'
    check "a rank inherits its own socket and nothing else of the launcher" is "$(cat "$dir/out")" "$(printf '1\n1')"
    run -n 2 "$joiner" system 'ls -l /proc/self/fd | grep -c "socket\|memfd\|anon_inode"'
    check "what a rank that has joined executes inherits nothing of that" is "$(cat "$dir/out")" "$(printf '0\n0')"
    from=$(now_ms)
    run --timeout 0.5 -n 2 sleep 100
    check "--timeout: status 124 ($(($(now_ms) - from)) ms)" is $status 124
    check "--timeout: says so" says "$dir/err" "not done after 0.5 s"
    run --timeout 0.3 -n 2 "$joiner" stubborn
    check "--timeout ends also who ignores SIGTERM" is $status 124

    printf 'one\ntwo\n' | "$runnel" run -n 3 --tag-output cat >"$dir/out" 2>"$dir/err"
    check "standard input goes to rank 0, nothing to the others" is "$(cat "$dir/out")" "$(printf '[0] one\n[0] two')"
    head -c 3000000 /dev/urandom | base64 >"$dir/big"
    "$runnel" run -n 2 cat <"$dir/big" >"$dir/out"
    check "... all of it" cmp -s "$dir/big" "$dir/out"
}

# what the ranks write
output() {
    run -n 1 printf abc
    check "a last line without newline as it is" is "$(od -c <"$dir/out")" "$(printf abc | od -c)"
    run -n 2 printf abc
    check "a newline between two of them" is "$(od -c <"$dir/out")" "$(printf 'abc\nabc' | od -c)"
    run -n 2 --tag-output printf 'a\nb'
    check "--tag-output tags each line" is "$(sort "$dir/out")" "$(printf '[0] a\n[0] b\n[1] a\n[1] b')"
    "$runnel" run -n 6 sh -c 'i=0
        while [ $i -lt 300 ]; do
            printf "%s" "<$$ begins "; printf "%s\n" "and ends $$>"
            printf "{$$ " >&2; echo "$$}" >&2
            i=$((i + 1))
        done' >"$dir/out" 2>&1 </dev/null
    whole='^(<([0-9]+) begins and ends \2>|\{([0-9]+) \3\})$'
    check "lines are not torn, output and error in one file" \
        is "$(grep -cE "$whole" "$dir/out") $(wc -l <"$dir/out")" "3600 3600"
    head -c 700000 /dev/zero | tr '\0' x >"$dir/long"
    run -n 1 cat "$dir/long"
    check "a line of 700 kB passes" cmp -s "$dir/long" "$dir/out"
    head -c 30000000 /dev/urandom >"$dir/random"
    run -n 1 cat "$dir/random"
    check "30 MB of any bytes pass" cmp -s "$dir/random" "$dir/out"
    run -n 3 sh -c 'echo out; echo err >&2'
    check "standard error is standard error" is "$(sort -u "$dir/out") $(sort -u "$dir/err")" "out err"
    run -n 1 sh -c 'echo last words; echo more >&2; kill -9 $$'
    check "a dead rank's output comes before the line about it" \
        is "$(cat "$dir/out"), $(head -1 "$dir/err"), $(sed -n 2p "$dir/err" | grep -c 'killed by signal 9')" \
        "last words, more, 1"
    {
        "$runnel" run -n 2 sh -c 'yes 0123456789012345678901234567890123456789 | head -c 41000000' &
        echo $! >"$dir/pid"
        wait
    } | {
        for ((i = 0; i < 600; i++)); do
            sleep 0.1
            writer=$(cat "$dir/pid" 2>/dev/null)
            [ -n "$writer" ] && [ -n "$(children "$writer")" ] && break
        done
        sleep 1
        grep VmHWM "/proc/$writer/status" >"$dir/hwm"
        wc -c >"$dir/count"
    }
    check "a slow reader slows the ranks and loses nothing" is "$(cat "$dir/count")" 82000000
    # beside a launcher that had nothing to hold: a sanitizer's own memory counts for nothing
    begin 2 sh -c 'echo ready; exec sleep 100'
    grep VmHWM "/proc/$launcher/status" >"$dir/idle"
    kill $launcher
    await_exit $launcher 60
    held=$(($(sed 's/[^0-9]//g' "$dir/hwm") - $(sed 's/[^0-9]//g' "$dir/idle")))
    check "... in bounded memory ($held kB more than an idle one)" below "$held" 8000
    from=$(now_ms)
    timeout 60 "$runnel" run -n 2 yes 2>"$dir/err" | head -1 >"$dir/out"
    status=${PIPESTATUS[0]}
    check "the reader goes away: so do the ranks ($(($(now_ms) - from)) ms)" is "$status $(cat "$dir/out")" "141 y"
    if [ -c /dev/full ]; then
        "$runnel" run -n 2 echo x >/dev/full 2>"$dir/err"
        check "output that cannot be written is an error" is "$? $(grep -c 'cannot write' "$dir/err")" "74 1"
    fi
    "$runnel" run -n 2 echo x >&- 2>"$dir/err"
    check "output to a closed standard output is an error" is "$? $(grep -c 'cannot write .*standard output is closed' "$dir/err")" "74 1"
    "$runnel" run -n 2 sh -c 'echo x >&2' >&- 2>"$dir/err"
    check "closed standard output does no harm to who writes nothing there" is "$? $(grep -c x "$dir/err")" "0 2"
    "$runnel" run -n 2 sh -c 'echo x >&2' >&- 2>/dev/null
    check "... whatever standard error is" is $? 0
    "$runnel" run -n 2 sh -c 'echo x >&2; echo y' >"$dir/out" 2>&-
    check "what is said to a closed standard error is lost" is "$? $(grep -c y "$dir/out")" "0 2"
}

becomes() { # STATES of launcher and ranks, within 60 s
    local i states
    for ((i = 0; i < 1200; i++)); do
        states=$(for p in $launcher $(children $launcher); do sed 's/.*) //' "/proc/$p/stat" | cut -c1; done | tr -d '\n')
        [ "$states" = "$1" ] && return 0
        sleep 0.05
    done
    echo "    they are $states"
    return 1
}
# signals to the launcher
signals() {
    for signal in INT:130 TERM:143 HUP:129 QUIT:131; do
        begin 3 "$joiner" ready
        kill -"${signal%:*}" $launcher
        await_exit $launcher 60
        check "SIG${signal%:*} ends all ($ms ms)" is "$status $(grep -c "^runnel: got signal" "$dir/err")" "${signal#*:} 1"
    done
    begin 2 sh -c 'trap "echo usr1" USR1; trap "echo usr2; exit 0" USR2; echo ready; while :; do sleep 0.05; done'
    kill -USR1 $launcher
    await_lines "$dir/out" 4
    kill -USR2 $launcher
    await_exit $launcher 60
    check "SIGUSR1 and SIGUSR2 are passed on" is "$status $(grep -c usr1 "$dir/out") $(grep -c usr2 "$dir/out")" "0 2 2"
    begin 2 "$joiner" stubborn
    kill -INT $launcher
    await_exit $launcher 60
    check "a job that ignores SIGINT ends within a bound ($ms ms)" is "$status" 130
    for ((tries = 0; tries < 10; tries++)); do # 5 s after the first it would end in any case: then it is not known
        begin 2 "$joiner" stubborn
        kill -INT $launcher
        sleep 0.3
        kill -INT $launcher
        await_exit $launcher 60
        [ "$ms" -lt 3000 ] && break
    done
    check "a second SIGINT ends it at once ($ms ms)" is "$status $((ms < 3000))" "130 1"
    bad=
    for ((tries = 0; tries < 12; tries++)); do # some of the ranks have started, others have not
        "$runnel" run -n 100 sleep 600 >"$dir/out" 2>"$dir/err" </dev/null &
        launcher=$!
        sleep 0.0$((tries * 4 + 10))
        kill -TERM $launcher
        await_exit $launcher 60
        [ "$status" = 143 ] && [ "$looks" -lt 200 ] || bad+="$status after $ms ms, "
    done
    check "SIGTERM while the ranks start ends all" is "$bad" ""
    begin 2 sh -c 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    kill -TERM $launcher
    await_exit $launcher 60
    check "a job that ends well on SIGTERM ends with 0" is "$status $(grep -c bye "$dir/out")" "0 2"
    begin 2 "$joiner" ready
    kill -TSTP $launcher
    check "SIGTSTP stops all" becomes TTT
    kill -CONT $launcher
    check "SIGCONT lets all go on" becomes SSS
    kill -INT $launcher
    await_exit $launcher 60
    check "... and be ended" is "$status" 130
}

# the launcher sleeps, and dies
orphans() {
    begin 2 "$joiner" ready
    now=$(awk '{print $14 + $15}' "/proc/$launcher/stat")
    for ((i = 0; i < 20; i++)); do # it may have to do with their start yet
        before=$now
        sleep 1
        now=$(awk '{print $14 + $15}' "/proc/$launcher/stat")
        [ "$now" = "$before" ] && break
    done
    check "an idle launcher uses no processor time" is "$now" "$before"
    kill -9 $launcher
    { wait $launcher; } 2>/dev/null
    check "kill -9 of the launcher ends all" none_left
    begin 3 sh -c '"$0" ready; true' "$joiner"
    kill -9 $launcher
    { wait $launcher; } 2>/dev/null
    check "... also below wrappers" none_left
    "$runnel" run -n 2 sh -c 'sleep 77 & sleep 78 & wait' >/dev/null 2>&1 </dev/null &
    launcher=$!
    for ((i = 0; i < 300; i++)); do
        [ "$(marked | grep -cE '^[0-9]+ sleep 7[78]')" = 4 ] && break
        sleep 0.1
    done
    kill -9 $launcher
    { wait $launcher; } 2>/dev/null
    check "... and what wrappers started" none_left
    run -n 2 true
    check "the guard goes with the launcher" none_left
    run -n 2 sh -c 'sleep 100 >/dev/null 2>&1 & exit 0'
    check "what a rank leaves running is ended with it" none_left
    from=$(now_ms)
    run -n 2 sh -c 'sleep 100 & exit 0'
    check "... also if it holds the output open ($(($(now_ms) - from)) ms)" is "$status $(none_left && echo none)" "0 none"
    run -n 2 sh -c 'setsid sh -c "sleep 5" & exit 0'
    check "... or has left the group: the job ends all the same" is "$status" 0
    run -n 2 bash -c 'echo x > >(sleep 0.3; cat)'
    check "... but what still writes may finish" is "$(cat "$dir/out")" "$(printf 'x\nx')"
}

# on a terminal
terminal() {
    if command -v script >/dev/null; then
        # script runs $SHELL; dash, unlike bash, ends at once when Ctrl-C reaches it too, before it prints the status.
        pty() { SHELL=/bin/bash script -qec "$1" /dev/null; }
        pty "$runnel run -n 1 env" </dev/null >"$dir/out"
        check "RUNNEL_TERMINAL=1 on a terminal" grep -q 'RUNNEL_TERMINAL=1' "$dir/out"
        : >"$dir/out"
        (sleep 0.2; printf 'typed\n'; shows "$dir/out" Typed 1) | pty "$runnel run -n 2 --tag-output sed -u s/t/T/" >"$dir/out"
        check "what is typed reaches rank 0" grep -q '\[0\] Typed' "$dir/out"
        : >"$dir/out"
        pty "$runnel run -n 1 sh -c 'printf \"50%%\\r\"; sleep 100; echo done'" </dev/null >"$dir/out" &
        pid=$!
        shows "$dir/out" 50% 1
        check "a carriage return shows progress at once" is "$? $(grep -c "done" "$dir/out")" "0 0"
        kill -- -$pid
        wait $pid 2>/dev/null
        from=$(now_ms)
        : >"$dir/out"
        (shows "$dir/out" ready 3; printf '\003'; shows "$dir/out" status 1) |
            pty "$runnel run -n 3 sh -c 'echo ready; exec sleep 100'; echo status \$?" >"$dir/out"
        check "Ctrl-C ends all ($(($(now_ms) - from)) ms)" grep -q 'status 130' "$dir/out"
        : >"$dir/out"
        ( # the line of the command is shown as it is typed, once or twice, when it stops, and when it goes on
            echo "$runnel run -n 2 --tag-output sh -c 'echo ready; sed -u s/in/IN/; echo over'"
            shows "$dir/out" '\[0\] ready' 1
            echo 'line 1'
            shows "$dir/out" '\[0\] lINe 1' 1
            printf '\032'
            shows "$dir/out" 'Stopped.*tag-output' 1
            shown=$(grep -ac tag-output "$dir/out")
            echo fg
            shows "$dir/out" tag-output $((shown + 1))
            echo 'line 2'
            shows "$dir/out" '\[0\] lINe 2' 1
            printf '\004'
            shows "$dir/out" '\[0\] over' 1
            echo exit
        ) | pty "bash --norc -i" >"$dir/out" 2>&1
        check "Ctrl-Z stops the job, fg lets it go on and read" \
            is "$(grep -c Stopped "$dir/out")$(grep -o '\[0\] lINe [12]' "$dir/out" | tr -d '\n')" "1[0] lINe 1[0] lINe 2"
    else
        echo "ok - on a terminal # SKIP script(1) is not installed"
    fi
}

# many ranks
many() {
    from=$(now_ms)
    run -n 64 true
    check "64 x true: $(($(now_ms) - from)) ms" is $status 0
    from=$(now_ms)
    run -n 64 "$joiner" close
    check "64 join and close: $(($(now_ms) - from)) ms" is $status 0
    from=$(now_ms)
    run -n 64 "$joiner" all
    check "64 connect all to all: $(($(now_ms) - from)) ms" is $status 0
}

# ranks that are stopped
stopped() {
    local rank
    begin 2 sh -c 'echo $$; exec sleep 60'
    rank=$(head -n 1 "$dir/out")
    kill -STOP "$rank"
    check "a rank that is stopped: the launcher says which, and since when" \
        shows "$dir/err" "^runnel: rank [01] on $host has been stopped (SIGSTOP, or a debugger) since [0-9:]*: the job waits" 1
    sleep 4
    check "... once" says "$dir/err" "has been stopped"
    kill -CONT "$rank"
    kill -TERM $launcher
    await_exit $launcher 20
    check "... and it is not killed for that" is $status 143
    run --stopped-after 0.5 --keep-going -n 2 sh -c '[ $RUNNEL_RANK = 1 ] && kill -STOP $$; echo on'
    check "--stopped-after: a rank that is stopped is killed, the others go on" is "$status $(cat "$dir/out")" "137 on"
    check "... with the reason" is "$(grep -c '^runnel: rank 1 on .* for too long (--stopped-after); killing it' "$dir/err")" 1
    run --stopped-after 0.5 -n 2 sh -c '[ $RUNNEL_RANK = 1 ] && kill -STOP $$; sleep 60'
    check "... and the job ends without --keep-going" is $status 137
    complains "--stopped-after takes a time" 64 "stopped-after takes a number of seconds" --stopped-after soon true
}

if [ "${1:-}" = part ]; then
    mkdir "$dir/tmp"
    export TMPDIR=$dir/tmp
    litter | sort >"$dir/before"
    set -m # background jobs get groups of their own, and SIGINT
    "${@:2}"
    check "$2: no process is left" none_left
    litter | sort >"$dir/after"
    check "$2: nothing is left in /dev/shm or the temporary directory" is "$(comm -13 "$dir/before" "$dir/after")" ""
    exit $failed
fi
parts=(signals terminal orphans stopped statuses output options many)
for ((i = 0; i < ${#parts[@]}; i++)); do
    ((i >= 4)) && { wait -n || failed=1; }
    "$0" part "${parts[i]}" >"$dir/$i.log" 2>&1 &
done
for ((; i > 0; i--)); do
    wait -n
    case $? in 0 | 127) ;; *) failed=1 ;; esac
done
for ((i = 0; i < ${#parts[@]}; i++)); do
    cat "$dir/$i.log"
done
exit "$failed"
