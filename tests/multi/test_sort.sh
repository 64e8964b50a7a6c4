#!/usr/bin/env bash
# examples/sort against sort(1): inputs of many shapes on 1 to 8 ranks, and what it says and leaves behind when it
# cannot sort.
# Prints "ok - name" or "not ok - name"; exits 77 if something is missing.
# shellcheck disable=SC2016,SC2154 # test.sh sets failed; Perl programs in single quotes
set -uo pipefail

# shellcheck source=tests/multi/example.sh
source "$(dirname "$0")/example.sh"
example sort 30 perl sort cmp

# shape NAME "RANKS..." FILE...: the output equals that of sort(1), and nothing is said.
shape() {
    local name=$1 ranks=$2 n bad=0
    shift 2
    LC_ALL=C sort -- "$@" >expected
    for n in $ranks; do
        rm -f result
        if ! run "$n" "$@" -o result >said 2>&1 || [ -s said ] || ! cmp result expected; then
            echo "# $name: wrong with $n ranks"
            sed 's/^/# /' said
            bad=1
        fi
    done
    ok "sorts $name on $ranks ranks" $bad
}

make() { # FILE PROGRAM: what the Perl program prints; rand() gives the same numbers each time
    perl -e 'binmode STDOUT; srand 7;' -e "$2" >"$1"
}

make empty ''
make newline 'print "\n"'
make short 'print "b"'
make few 'print "c\nb\na\n"'
make blank 'print "\n" x 5000'
make equal 'print "the same line\n" x 30000'
make equal-long 'print "x" x 3000, "\n" for 1 .. 300'
make nul 'print map { join("", map { ("\0", "a", "\1", "\377")[rand 4] } 0 .. rand 12), "\n" } 1 .. 5000'
make prefixes 'print map { ("a" x $_, "\n", "a" x $_, "\0\n") } reverse 0 .. 200'
make binary 'print pack("C*", map { rand 256 } 1 .. 300000)'
make lengths 'print map { "x" x (rand() ** 8 * 40000), int rand 100, "\n" } 1 .. 1000'
make huge 'print "k" x 3000000, $_, "\n", $_, "\n" for 3, 1, 2, 1; print "k" x 3000000'
make sorted 'printf "%09d\n", $_ for 1 .. 40000'
make reversed 'printf "%09d\n", 50000 - $_ for 1 .. 40000'
make shared 'printf "%s %d\n", "/a/rather/long/path/that/all/lines/share" x 3, rand 1e9 for 1 .. 10000'
make skewed 'print rand() < 0.9 ? "often\n" : rand() . "\n" for 1 .. 40000'
make two-sizes 'print "\n" x 60000; print "z" x 99, rand, "\n" for 1 .. 600'

for file in few nul; do
    shape "$file" '1 2 3 4 5 6 7 8' $file
done
for file in empty newline short blank prefixes binary skewed; do
    shape "$file" '1 3 8' $file
done
for file in equal equal-long lengths huge shared sorted reversed two-sizes; do
    shape "$file" '2 4 7' $file
done
shape 'several files, some without a last newline' '1 2 5 8' short binary empty few short huge newline nul
shape 'one file named twice' '1 4' nul nul

# Many duplicates must not gather on one rank.
for file in equal equal-long skewed blank sorted two-sizes; do
    run 4 --verbose $file -o result >said 2>&1
    perl -ne 'exit(/has ([\d.]+) of the lines and ([\d.]+) of the bytes/ && ($1 < $2 ? $1 : $2) < 1.35 ? 0 : 1)
        if /fullest/' said
    ok "spreads $file evenly" $?
done

run 3 - -o result <nul && LC_ALL=C sort nul | cmp - result
ok 'sorts standard input' $?
mkfifo pipe
cat binary >pipe &
run 3 pipe few -o result && LC_ALL=C sort binary few | cmp - result
ok 'sorts a pipe' $?

cp nul both
chmod 640 both
ln -s both link
run 4 both few -o link && LC_ALL=C sort nul few | cmp - both && [ "$(stat -c %a both)" = 640 ] && [ -L link ]
ok 'writes over an input, through a link, keeping its mode' $?

run 2 --help >said && grep -q '^usage: ' said
ok 'explains itself with --help' $?

if command -v script >/dev/null; then
    SHELL=/bin/bash script -qec "'$runnel' run -n 2 '$program' nul -o result" /dev/null </dev/null >said
    grep -q 'sort: exchanging *[0-9]* %' said
    ok 'shows progress on a terminal' $?
else
    echo 'ok - shows progress on a terminal # SKIP script(1) is not installed'
fi

# refused NAME PATTERN ARGUMENT...: a sentence with the pattern; failure; the old output and the directory as they were.
refused() {
    local name=$1 pattern=$2 status=0
    shift 2
    mkdir here && cp few here/old
    (cd here && run 4 "$@") >said 2>&1 && status=1
    if ! grep -q -- "$pattern" said || [ "$(ls -A here)" != old ] || ! cmp few here/old; then
        sed 's/^/# /' said
        status=1
    fi
    rm -rf here
    ok "refuses $name" "$status"
}

refused 'a missing input' 'cannot read nothing: No such file' nothing -o old
refused 'a directory as input' 'is a directory' .. -o old
refused 'no input' 'no input' -o old
refused 'no output' 'no output' old
refused 'an unknown option' 'Try --help' --quick old -o old
refused 'an output in no directory' 'cannot write nowhere/file: No such file' old -o nowhere/file
refused 'a device as output' 'not a regular file' old -o /dev/null
refused 'a directory as output' 'not a regular file' old -o ..
perl -e 'srand 7; print rand, "\n" for 1 .. 1200000' >many
# The limit leaves room for the memory of the library, which counts as files.
printf '#!/usr/bin/env bash\ntrap "" XFSZ\nulimit -f 12000\nexec "%s" "$@"\n' "$program" >limited
chmod +x limited
program=$dir/limited refused 'an output that does not fit' 'cannot write .*: File too large' ../many -o old

# A rank is killed at some moment: the job fails, or had all but ended; the output is the old or the sorted one, and
# nothing else is left.
LC_ALL=C sort many >expected
bad=0
for delay in 0.02 0.04 0.06 0.08 0.10 0.14 0.18 0.30; do
    mkdir here && cp few here/old
    (cd here && run 4 ../many -o old) >said 2>&1 &
    job=$!
    sleep $delay
    mapfile -t running < <(find /proc/[0-9]*/exe -lname "$(realpath "$program")" 2>/dev/null)
    for exe in "${running[@]}"; do
        if [ "$(readlink "${exe%exe}cwd")" = "$dir/here" ]; then
            exe=${exe#/proc/}
            kill -9 "${exe%/exe}" 2>/dev/null
            break
        fi
    done
    status=0
    wait $job || status=$?
    if cmp -s expected here/old; then
        now='the new output'
    elif [ $status != 0 ] && cmp -s few here/old; then
        now='the old output'
    else
        now='A WRONG OUTPUT'
        bad=1
    fi
    echo "# a rank killed after $delay s: $now, status $status"
    if [ "$(ls -A here)" != old ]; then
        sed 's/^/# /' said
        bad=1
    fi
    rm -rf here
done
ok 'leaves nothing behind when a rank is killed' $bad

exit "$failed"
