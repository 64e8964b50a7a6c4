#!/usr/bin/env bash
# Jobs in narrow places: an ordinary user, no or little /dev/shm, no rights over each other, a bare chroot, few cores, small
# limits, a fork, many at once. Each works, or says in one sentence what it lacks. What needs a right that we have not
# is skipped.
# shellcheck disable=SC1091,SC2154,SC2016,SC2317 # test.sh sets them; scripts for other shells in single quotes; functions called through ok
. "$(dirname "$0")/../support/test.sh"
faults=$build/tests/multi-faults
joiner=$build/tests/multi-run_joiner
storms=${RUNNEL_TEST_STORMS:-3}
chmod 755 "$dir"
export RUNNEL_TEST_MARK=$$.$RANDOM # every process we cause has it in its environment
# Where other users reach them, and where a chroot can be made.
cp "$runnel" "$dir/runnel"
cp "$faults" "$dir/faults"
cp "$joiner" "$dir/joiner"
chmod 755 "$dir"/*
sanitized=
grep -qE '__(a|t)san_init' "$faults" && sanitized=yes

skip() { echo "ok - $1 # SKIP $2"; }
run() { # COMMAND...; leaves status, $dir/out, $dir/err. Through pipes: the limit of file sizes is not about these
    {
        {
            timeout 60 "$@" </dev/null 2>&3 3>&-
            echo $? >"$dir/status"
        } | cat >"$dir/out"
    } 3>&1 | cat >"$dir/err"
    status=$(cat "$dir/status")
}
is() { [ "$1" = "$2" ]; }
all_done() { [ "$status" -eq 0 ] && [ "$(grep -cx 'done' "$dir/out")" -eq "$1" ] && [ ! -s "$dir/err" ]; }
says() { # STATUS TEXT
    [ "$status" -eq "$1" ] && grep -qE "$2" "$dir/err"
}
explains() { # it works, or somebody says why not; nobody is killed by a fault of its own
    [ "$status" -eq 0 ] || { [ "$status" -lt 128 ] && [ -s "$dir/err" ]; }
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }
none_left() { # within 30 s
    local i
    for ((i = 0; i < 300; i++)); do
        grep -lszxF "RUNNEL_TEST_MARK=$RUNNEL_TEST_MARK" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do
            case $(readlink "/proc/$pid/exe" 2>/dev/null) in
            "$dir"/* | "$runnel") echo "$pid" ;;
            esac
        done >"$dir/left"
        [ ! -s "$dir/left" ] && return 0
        sleep 0.1
    done
    return 1
}

root=
[ "$(id -u)" -eq 0 ] && root=yes
if [ -n "$root" ]; then
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --no-new-privs env -u HOME)
    if ! "${as_nobody[@]}" true 2>/dev/null; then as_nobody=(); fi
    namespace=(unshare -m)
else
    as_nobody=(env -u HOME)
    namespace=(unshare -rm)
fi

# ---- users and rights

if [ ${#as_nobody[@]} -gt 0 ]; then
    run "${as_nobody[@]}" "$dir/runnel" run -n 2 "$dir/faults" target rank
    check "an ordinary user without capabilities and HOME" all_done 2
    # The kernel lets nobody look into a process whose file may not be read: no /proc/PID/fd, no ptrace.
    chmod 111 "$dir/runnel" "$dir/faults"
    run "${as_nobody[@]}" "$dir/runnel" run -n 2 "$dir/faults" target rank
    if [ -n "$sanitized" ]; then
        skip "without the right to trace" "the sanitizers read their own program"
    else
        check "without the right to trace" all_done 2
    fi
    chmod 755 "$dir/runnel" "$dir/faults"
    run "${as_nobody[@]}" prlimit --nproc=1 "$dir/runnel" run -n 2 "$dir/faults" target rank
    if [ "$status" -eq 0 ]; then
        skip "one process only: says what to raise" "the limit of processes is not enforced for this user"
    elif [ -n "$sanitized" ]; then
        skip "one process only: says what to raise" "the sanitizers start processes of their own"
    else
        check "one process only: says what to raise" says 71 'cannot start .*ulimit -u'
    fi
else
    skip "an ordinary user without capabilities and HOME" "setpriv is not there or may not change the user"
fi

# ---- /dev/shm and chroot

if "${namespace[@]}" true 2>/dev/null; then
    run "${namespace[@]}" sh -c 'umount -l /dev/shm 2>/dev/null
        mount -t tmpfs -o ro,mode=0 none /dev/shm && exec "$@"' sh "$dir/runnel" run -n 2 "$dir/faults" target rank
    check "without /dev/shm" all_done 2
    run "${namespace[@]}" sh -c 'mount -t tmpfs -o size=64M none /dev/shm &&
        dd if=/dev/zero of=/dev/shm/full bs=1M count=64 2>/dev/null; exec "$@"' \
        sh "$dir/runnel" run -n 4 "$dir/faults" target rank
    check "with 64 MB of /dev/shm, all in use" all_done 4
else
    skip "without /dev/shm" "no mount namespace for us"
    skip "with 64 MB of /dev/shm, all in use" "no mount namespace for us"
fi

bare=$dir/bare
mkdir "$bare"
for file in "$dir/runnel" "$dir/faults" $(ldd "$dir/runnel" "$dir/faults" | grep -oE '/[^ ]+\.so[^ ]*' | sort -u); do
    mkdir -p "$bare$(dirname "$file")"
    cp -L "$file" "$bare$file"
done
enter=(chroot "$bare")
[ -z "$root" ] && enter=(unshare -r chroot "$bare")
if [ -n "$sanitized" ]; then
    skip "in a bare chroot" "the sanitizers need /proc"
elif "${enter[@]}" "$dir/runnel" --version >/dev/null 2>&1; then
    run "${enter[@]}" "$dir/runnel" run -n 2 "$dir/faults" target rank
    check "in a bare chroot, without /proc, /dev and /tmp" all_done 2
    run prlimit --nofile=64 "${enter[@]}" "$dir/faults" target often
    check "... each close gives all descriptors back" all_done 1
else
    skip "in a bare chroot" "no right to enter it"
fi

# ---- limits

run prlimit --nofile=64 "$dir/runnel" run -n 2 "$dir/faults" target rank
check "64 descriptors: two ranks" all_done 2
run prlimit --nofile=64 "$dir/runnel" run -n 16 "$dir/faults" target rank
check "64 descriptors: 16 ranks are told how many can be" says 71 'at most [0-9]+ ranks'
run prlimit --nofile=64 "$dir/faults" target often
check "64 descriptors: opened and closed 100 times" all_done 1
run prlimit --fsize=1024 "$dir/runnel" run -n 2 "$dir/faults" target rank
check "files of 1 kB: the launcher says what to raise" says 71 '^runnel: .*ulimit -f'
run prlimit --fsize=100000 "$dir/runnel" run -n 2 "$dir/faults" target rank
check "files of 100 kB: the rank says what to raise" says 3 '^target: .*ulimit -f'
if [ -n "$sanitized" ]; then
    skip "files of 1 kB: a job of one needs none" "the sanitizers do"
    skip "little address space" "the sanitizers need much of it"
else
    run prlimit --fsize=1024 "$dir/faults" target self
    check "files of 1 kB: a job of one needs none" all_done 1
    bad=0 worked=0 tried=0
    first=3000 # with less the kernel kills what it cannot map, before anything of ours runs
    until prlimit --as=$((first * 1024)) "$runnel" --version >/dev/null 2>&1 || [ $? -lt 128 ]; do first=$((first + 100)); done
    for ((kb = first; kb <= 60000; kb += kb / 12)); do
        # A receiver without memory for a message leaves it where it is, and waits: with a bound, then.
        run prlimit --as=$((kb * 1024)) "$dir/runnel" run --timeout 2 -n 2 "$dir/faults" target rank
        tried=$((tried + 1))
        explains || { bad=$((bad + 1)); echo "    $kb kB: status $status: $(head -c 300 "$dir/err")"; }
        [ "$status" -eq 0 ] && worked=$((worked + 1))
    done
    check "little address space: works $worked times of $tried, else says why" is $bad 0
fi

# ---- fork and exec

run "$dir/runnel" run -n 2 "$dir/faults" target fork
check "a rank that forks goes on, its child is refused, what that executes inherits nothing" all_done 2
check "... really nothing" is "$(grep inherited "$dir/out")" ""
run "$dir/faults" target fork
check "... also a job of one" is "$status$(cat "$dir/out")" 0done

# ---- many

from=$(now_ms)
run taskset -c 0,1 "$dir/runnel" run -n 16 "$dir/faults" target rank
check "16 ranks on two cores, all to all: $(($(now_ms) - from)) ms" all_done 16
bad=0
from=$(now_ms)
for ((i = 0; i < storms; i++)); do
    run "$dir/runnel" run -n 64 "$dir/joiner" close
    [ "$status" -eq 0 ] && [ ! -s "$dir/err" ] || bad=$((bad + 1))
done
check "64 ranks start and close, $storms times: $((($(now_ms) - from) / storms)) ms each" is $bad 0
check "no process is left" none_left
exit "$failed"
