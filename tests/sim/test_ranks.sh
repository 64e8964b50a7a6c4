#!/usr/bin/env bash
# Ranks of the virtual cluster: each has its own memory, errno and library state; what a program must not do ends it with
# its place; a run does not depend on what compiled the simulator or the program.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-token.so" "$vprocs/vproc-wrong.so" "$vprocs/vproc-refused.so" "$vprocs/vproc-busy.so"

# --- many ranks ---

timeout 120 "$runnel" sim -n 1000 "$vprocs/vproc-token.so" 10 >tokens 2>&1
ok "1,000 ranks run" $?
[ "$(grep -c '^rank [0-9]*: right, ' tokens)" = 1000 ]
ok "each of 1,000 ranks has globals, heap, errno and errors of its own" $?
awk '/^rank/ { n += $4 } END { exit n != 10000 }' tokens
ok "every message of 1,000 ranks arrived" $?

# --- what is refused ---

"$runnel" sim "$vprocs/vproc-refused.so" >/dev/null 2>said
[ $? = 126 ] && grep -q 'no shim for .*socket' said && grep -q 'no shim for .*epoll_create1' said
ok "names without a shim are refused at load, and told" $?
"$runnel" sim ./nothing.so >/dev/null 2>said
[ $? = 71 ] && grep -q 'nothing.so' said
ok "a program that is not there is named" $?
head -c 3000 "$vprocs/vproc-token.so" >cut.so
"$runnel" sim ./cut.so >/dev/null 2>said
[ $? = 126 ] && grep -q 'cut.so: ' said
ok "a file that was cut off is refused" $?
"$runnel" sim "$runnel" >/dev/null 2>said
[ $? = 126 ] && grep -q 'fPIC -shared' said
ok "an executable is refused, with what to do" $?

# --- what ends a rank ---

# The thread sanitizer minds that the report of a fault takes memory in a handler: it is the fault of a program, which
# never stands inside our allocator. It runs handlers of clocks only when it is called, and reads the processor's clock.
tsan=no
if grep -q __tsan_init "$runnel"; then
    tsan=yes
    export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}report_signal_unsafe=0"
fi

wrong() { # argument, status, words...
    local what=$1 want=$2
    shift 2
    timeout 60 "$runnel" sim -n 3 "$vprocs/vproc-wrong.so" "$what" >said 2>&1
    local status=$?
    [ $status = "$want" ] || { echo "# $what: status $status"; return 1; }
    for word in "$@"; do
        grep -qF -- "$word" said || { echo "# $what: no '$word' in:"; sed 's/^/#   /' said; return 1; }
    done
}

# Whether the kernel's order to trap a time-stamp read is followed: some virtual machines do not (PVM).
counter_traps() {
    cat >reader.c <<'END'
#include <sys/prctl.h>
int main(void)
{
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    __asm__ volatile("rdtsc" : : : "eax", "edx");
    return 0;
}
END
    cc reader.c -o reader && ! ./reader
}

if [ $tsan = no ]; then
    wrong spin 152 'rank 1 did not wait for ' ' of processor time at spin+0x' ' / middle+0x' ' / main+0x'
    ok "an endless loop is ended with its place and who called it" $?
else
    echo "ok - an endless loop is ended # SKIP the thread sanitizer keeps signals back from loops that call nothing"
fi
wrong calls 152 'calls without ever waiting at calls+0x' ' / main+0x'
ok "an endless loop of calls is ended with its place" $?
cp said calls.1
wrong calls 152 && cmp -s said calls.1
ok "... at the same moment in each run" $?
wrong touch 139 'rank 1 was ended by signal 11' 'at touch+0x' ' / main+0x' 'at 0.00'
ok "a fault ends the rank with its place" $?
wrong deep 139 'has overflown its stack' 'at deep+0x'
ok "a stack that overflows is told apart" $?
wrong divide 136 'signal 8'
ok "a division by zero ends the rank" $?
wrong free 134 'no block of memory begins' 'at double_free+0x'
ok "a block that is freed twice is found" $?
wrong pointer 139 'rank 1 was ended by signal 11' ' / bad_pointer+0x'
ok "a bad pointer that the library follows is the program's fault" $?
wrong abort 134 'rank 1 called abort at ' ; ok "abort ends the rank" $?
wrong raise 143 'rank 1 was killed by signal 15'; ok "a raised signal ends the rank" $?
wrong exit 7 'rank 1 exited with status 7'; ok "exit ends the job with its status" $?
wrong clock 0 'three seconds later'; ok "who waits by looking at the clock gets there" $?
grep -qE '^runnel: [23]\.[0-9]+ s,' said; ok "... in virtual time" $?
wrong nothing 0 "done"; ok "... and one that does nothing wrong ends well" $?
timeout 60 "$runnel" sim -n 3 --timeout 0.5 "$vprocs/vproc-wrong.so" silent >said 2>&1
[ $? = 124 ] && grep -q 'no end after 0.500 s of virtual time' said
ok "a job that hangs ends with its time" $?
grep -qE '^runnel: rank [0-2] has not ended: it is at .*main\+0x.*, at 0\.5' said
ok "... and says where it hangs" $?
if [ "$(sed -n 's/^Seccomp_filters:\t//p' /proc/self/status)" ] && ! grep -q asan <(ldd "$runnel"); then
    wrong syscall 159 'made system call 39 by itself' 'at system_call+0x'
    ok "a system call of its own is caught" $?
    if [ $tsan = no ] && counter_traps; then
        wrong counter 139 'time-stamp counter' 'at counter+0x'
        ok "a look at the processor's clock is caught" $?
    elif [ $tsan = no ]; then
        wrong counter 0 'this machine does not trap' 'counter+0x'
        ok "a look at the processor's clock that this machine does not trap is told before the run" $?
        echo "ok - a look at the processor's clock is caught # SKIP this virtual machine takes PR_SET_TSC and traps nothing"
    else
        echo "ok - a look at the processor's clock is caught # SKIP the thread sanitizer looks at it itself"
    fi
else
    echo "ok - a system call of its own is caught # SKIP no filters here"
fi
timeout 60 "$runnel" sim -n 3 --keep-going "$vprocs/vproc-wrong.so" touch >said 2>&1
[ $? = 139 ] && [ "$(grep -c '^done' said)" = 2 ]
ok "with --keep-going the others finish" $?

# --- one run, whatever compiled it ---

compile() { # compiler, optimisation
    "$1" -std=c11 -D_GNU_SOURCE "-O$2" -fPIC -shared -I"$tree/include" "$tree/tests/sim/vproc_token.c" -o "token-$1-$2.so"
}
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for level in 0 2 3; do
        compile $compiler $level || { ok "$compiler -O$level compiles it" 1; continue; }
        for _ in 1 2; do
            "$runnel" sim -n 20 --seed 5 "./token-$compiler-$level.so" 50 >run
            hash_of run >>hashes
            setarch -R "$runnel" sim -n 20 --seed 5 "./token-$compiler-$level.so" 50 >run 2>/dev/null && hash_of run >>hashes
            "$runnel" sim -n 20 --seed 5 "./token-$compiler-$level.so" 50 addresses >run
            hash_of run >>"addresses-$compiler-$level"
            setarch -R "$runnel" sim -n 20 --seed 5 "./token-$compiler-$level.so" 50 addresses >run 2>/dev/null &&
                hash_of run >>"addresses-$compiler-$level"
        done
        [ "$(sort -u "addresses-$compiler-$level" | wc -l)" = 1 ]
        ok "a program of $compiler -O$level has the same addresses in each run" $?
    done
done
[ "$(sort -u hashes | wc -l)" = 1 ]
ok "one hash for the program of each compiler and optimisation ($(wc -l <hashes) runs)" $?

# ---- who always finds something of a rank of its own host still keeps the times of its links to others ----

busy() { # options...: all is answered, within half a second each, without a look in vain, which would keep times by itself
    timeout 60 "$runnel" sim -n 3 --hosts 2 "$@" "$vprocs/vproc-busy.so" 100 >said 2>&1 &&
        awk '/answers, the slowest/ { good = $1 == 100 && $6 < 500000 && $8 == 0 } END { exit !good }' said && return 0
    echo "# $*: $(tr '\n' ';' <said)"
    return 1
}

busy; ok "beside a busy rank of the same host another host answers" $?
for seed in 1 2 3 4; do
    busy --loss 10% --seed $seed; ok "... and what the network loses is sent again, seed $seed" $?
done
exit "$failed"
