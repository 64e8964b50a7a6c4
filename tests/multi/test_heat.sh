#!/usr/bin/env bash
# examples/heat against a plain serial computation in Perl: pictures of many shapes and forms on 1 to 8 ranks, byte for
# byte; and what it says and leaves behind when it cannot go on.
# Prints "ok - name" or "not ok - name"; exits 77 if something is missing.
# shellcheck disable=SC2016 # Perl programs in single quotes
set -uo pipefail

# shellcheck source=tests/multi/example.sh
source "$(dirname "$0")/example.sh"
# A sanitizer would end the program where malloc has to say that there is no memory.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_may_return_null=1
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}allocator_may_return_null=1
example heat 60 perl cmp

# reference FILE ITERATIONS EPSILON [KEPT-GREY...]: the picture after that, on standard output; the iterations that were
# made go to the file "made". The order of the sum is the program's, so that the last bits are the same.
cat >reference <<'PERL'
use strict;
my ($file, $iterations, $epsilon, @kept) = @ARGV;
open my $in, '<:raw', $file or die;
my $text = do { local $/; <$in> };
my $gap = qr/(?:\s|#[^\n]*\n)+/;
$text =~ s/^(P[25])$gap(\d+)$gap(\d+)$gap(\d+)\s// or die "header of $file";
my ($kind, $w, $h, $max) = ($1, $2, $3, $4);
my @t = $kind eq 'P2' ? split(' ', $text =~ s/#[^\n]*//gr) : unpack($max > 255 ? 'n*' : 'C*', $text);
my %kept = map { ($_ eq 'black' ? 0 : $_ eq 'white' ? $max : $_) => 1 } @kept;
my @held = map { $kept{$_} } @t;
my $made = 0;
while ($made < $iterations) {
    my ($most, @next) = (0);
    for my $y (0 .. $h - 1) {
        my ($up, $down) = ($y > 0 ? $y - 1 : $y, $y + 1 < $h ? $y + 1 : $y);
        for my $x (0 .. $w - 1) {
            my ($left, $right) = ($x > 0 ? $x - 1 : $x, $x + 1 < $w ? $x + 1 : $x);
            my $i = $y * $w + $x;
            $next[$i] = $held[$i] ? $t[$i]
                : 0.25 * (($t[$up * $w + $x] + $t[$down * $w + $x]) + ($t[$y * $w + $left] + $t[$y * $w + $right]));
            my $change = abs($next[$i] - $t[$i]);
            $most = $change if $change > $most;
        }
    }
    @t = @next;
    $made++;
    last if $made % 16 == 0 && $most <= $epsilon;
}
binmode STDOUT;
print "P5\n$w $h\n$max\n", pack($max > 255 ? 'n*' : 'C*', map { int($_ + 0.5) } @t);
open my $out, '>', 'made' or die;
print $out $made;
PERL

# draw FILE FORM WIDTH HEIGHT MAXVAL: some cells black, some white, the others anything.
draw() {
    perl -e 'srand 11; my ($form, $w, $h, $max) = @ARGV; binmode STDOUT;
        my @g = map { my $r = rand; $r < 0.06 ? 0 : $r < 0.12 ? $max : int rand($max + 1) } 1 .. $w * $h;
        if ($form eq "P2") {
            print "P2 # plain\n#\n# a comment\n  $w#and\n$h\r\n\t$max\n";
            print $g[$_], $_ % 13 == 5 ? " # a comment\n" : $_ % 7 ? " " : "\n\n" for 0 .. $#g;
        } else {
            print "P5\n# a comment\n$w # and\n$h\n$max\n", pack($max > 255 ? "n*" : "C*", @g);
        }' "${@:2}" >"$1"
}

# same NAME "RANKS..." FILE ITERATIONS EPSILON: the pictures and the number of iterations are those of the reference.
same() {
    local name=$1 ranks=$2 file=$3 iterations=$4 epsilon=$5 n bad=0
    perl reference "$file" "$iterations" "$epsilon" black white >expected
    for n in $ranks; do
        rm -f result
        if ! run "$n" "$file" -o result -n "$iterations" -e "$epsilon" >said 2>&1 || ! cmp result expected ||
            ! grep -q " $(cat made) iterations, " said; then
            echo "# $name: wrong with $n ranks, expected $(cat made) iterations"
            sed 's/^/# /' said
            bad=1
        fi
    done
    ok "computes $name on $ranks ranks" $bad
}

draw plain P2 37 29 255
draw byte P5 41 31 255
draw wide P5 33 23 65535
draw odd P2 19 17 1000
draw two P5 9 6 2
draw row P5 301 1 255
draw column P5 1 301 255
draw square P2 2 2 9
draw flat P5 60 3 65535
draw long P5 150000 3 255
printf 'P2 1 1 9 4' >cell
printf 'P5 1 1 255 \200' >grey
draw larger P5 97 61 255

same 'a plain picture with comments' '1 2 3 5 7' plain 150 0
same 'a picture of bytes' '1 2 3 5 7' byte 150 0
same 'a picture of 16 bits' '1 2 3 5 7' wide 150 0
same 'a plain picture with another white' '1 2 3 5 7' odd 75 0
same 'a picture of three greys' '1 2 3 5 7' two 50 0
same 'a larger picture' '2 3 5 7' larger 100 0
same 'a single row' '1 2 7' row 100 0
same 'a single column' '1 2 3 5 7' column 100 0
same 'one cell' '1 2 5' cell 20 0
same 'one cell of a byte' '3' grey 1 0
same 'four cells' '1 2 3 7' square 40 0
same 'fewer rows than ranks' '4 5 8' flat 60 0
same 'rows of more than a megabyte' '1 2 3' long 4 0
same 'one iteration' '1 3' byte 1 0
same 'no iteration' '1 3' byte 0 0
same 'until little changes' '1 2 3 5 7' byte 100000 0.5
same 'until hardly anything changes' '1 3 7' plain 100000 0.02
# The last bits decide when nothing changes any more, and greys do not show them.
draw tiny P2 7 8 255
draw small P5 12 10 200
same 'until nothing changes at all' '1 2 3 5 7' tiny 6000 0
same 'until nothing changes in more cells' '1 2 3 5 7' small 6000 0

"$program" plain -o result -n 40 >said 2>&1 && perl reference plain 40 0 black white | cmp - result
ok 'runs without the launcher' $?

run 3 - -o result -n 40 <wide >said 2>&1 && perl reference wide 40 0 black white | cmp - result
ok 'reads standard input' $?

bad=0
run 3 byte -o result -n 40 --keep none >said 2>&1 && perl reference byte 40 0 | cmp - result || bad=1
run 3 byte -o result -n 40 --keep 7,white,100 >said 2>&1 && perl reference byte 40 0 7 100 255 | cmp - result || bad=1
ok 'keeps the greys that it is told to' $bad

for n in 1 2 3 5 7; do
    run $n wide --colour colour$n -n 60 >said 2>&1
done
cat >compare <<'PERL'
my ($grey, $colour) = map { open my $f, '<:raw', $_ or die; local $/; scalar <$f> } @ARGV;
$grey =~ s/^P5\n33 23\n65535\n// && $colour =~ s/^P6\n33 23\n255\n// && length $colour == 33 * 23 * 3 or die 'size';
my @g = unpack 'n*', $grey;
my %known = (0 => '0 0 4', 65535 => '252 255 164');
for (0 .. $#g) {
    my @rgb = unpack 'C3', substr $colour, $_ * 3, 3;
    die "cell $_: @rgb" if exists $known{$g[$_]} ? "@rgb" ne $known{$g[$_]} : $g[$_] > 50000 && $rgb[0] < 225;
}
PERL
run 2 wide -o result -n 60 >said 2>&1 && perl compare result colour1 && cmp colour1 colour2 && cmp colour1 colour3 &&
    cmp colour1 colour5 && cmp colour1 colour7
ok 'writes the same colours with 1 2 3 5 7 ranks' $?

cp byte both
chmod 640 both
ln -s both link
perl reference byte 40 0 black white >expected
run 4 both -o link -n 40 >said 2>&1 && cmp expected both && [ "$(stat -c %a both)" = 640 ] && [ -L link ]
ok 'writes over the input, through a link, keeping its mode' $?

bad=0
for size in 1x1 1x50 333x20 64x64; do
    if ! "$program" --make $size drawn >said 2>&1 || [ -s said ] ||
        [ "$(sed -n 2p drawn)" != "${size/x/ }" ] || ! run 3 drawn -o result -n 20 >said 2>&1; then
        sed "s/^/# $size: /" said
        bad=1
    fi
done
perl -0777 -ne '/\0/ && /\x80/ && /\xff/ or exit 1' drawn || bad=1
ok 'draws a picture to begin with' $bad

run 4 plain -o result -n 50 >said 2>&1 && perl -0777 -ne 'my $n = qr/\d+\.\d+/;
    /^heat: 37 x 29 cells, 4 ranks, 50 iterations, residual $n\nheat: $n s, $n million cell updates a second, / &&
        /, $n % of the time waiting\nheat: not converged: .* by $n greys, more than 0.001\. .*\n$/ &&
        tr/\n// == 3 or exit 1' said &&
    run 1 plain -o result -n 50 | grep ', 0.0 % of the time waiting$' >said
ok 'reports at the end, and shows no progress where there is no terminal' $?
run 2 tiny -o result -n 6000 -e 0.1 >said && [ "$(wc -l <said)" = 2 ]
ok 'says nothing of that when it has converged' $?

run 2 --help >said && grep -q '^usage: ' said
ok 'explains itself with --help' $?

if command -v script >/dev/null; then
    SHELL=/bin/bash script -qec "'$runnel' run -n 2 '$program' plain -o result" /dev/null </dev/null >said &&
        grep -q 'heat: iteration *[0-9]* %' said
    ok 'shows progress on a terminal' $?
else
    echo 'ok - shows progress on a terminal # SKIP script(1) is not installed'
fi

# refused NAME PATTERN ARGUMENT...: one sentence with the pattern; failure, but not for want of time; the old output and
# the directory as they were.
refused() {
    local name=$1 pattern=$2 status=0 bad=0
    shift 2
    mkdir here && cp byte here/old
    (cd here && run 4 "$@") >said 2>&1 || status=$?
    if [ $status = 0 ] || [ $status -ge 124 ] || ! grep -q -- "^heat: .*$pattern" said ||
        [ "$(grep -c '^heat: ' said)" != 1 ] || [ "$(ls -A here)" != old ] || ! cmp byte here/old; then
        echo "# status $status"
        sed 's/^/# /' said
        bad=1
    fi
    rm -rf here
    ok "refuses $name" "$bad"
}

# bad_input NAME PATTERN CONTENTS [PATTERN]: from a file, and through a pipe, whose length nobody knows before its end.
bad_input() {
    printf '%b' "$3" >bad-input
    refused "$1" "$2" ../bad-input -o old
    refused "$1 through a pipe" "${4:-$2}" - -o old < <(cat bad-input)
}

bad_input 'an empty file' 'no PGM picture' ''
bad_input 'a text' 'no PGM picture.*--make' 'Once upon a time'
bad_input 'a picture in colour' 'in colour.*ppmtopgm' 'P6 1 1 255 abc'
bad_input 'a bitmap' 'bitmap.*pbmtopgm' 'P1 1 1 1'
bad_input 'a header that ends early' 'ends within its header' 'P5 10 # 12'
bad_input 'a word for a width' 'no PGM picture: where the width' 'P5 ten 10 255 '
bad_input 'a negative height' 'where the height' 'P2 3 -3 255 1 2 3'
bad_input 'a picture without cells' 'no cells' 'P5 0 10 255 '
bad_input 'a largest grey of 0' 'largest grey is 0' 'P5 2 2 0 abcd'
bad_input 'a largest grey above 16 bits' 'the largest grey is more than 65535' 'P5 2 2 65536 abcdefgh'
bad_input 'a width without end' 'the width is more than' 'P5 99999999999999999999999999 1 255 a'
bad_input 'a size that overflows' 'more than .* Scale' 'P5 1073741824 1073741824 255 a'
bad_input 'a large picture of which little is there' 'truncated: 900000 x 900000 cells need' \
    'P5 900000 900000 255 abc' 'truncated\|no memory'
bad_input 'a truncated picture of bytes' 'truncated: 4 x 3 cells need 12 bytes, and it has 10' 'P5 4 3 255 abcdefghij' \
    'truncated: it ends in row 3 of 3'
bad_input 'a truncated picture of 16 bits' 'truncated' 'P5 2 2 256 \0a\0b\0c\0'
bad_input 'a truncated plain picture' 'truncated: it ends in row 2 of 2' 'P2 3 2 255 100 200 100 100'
bad_input 'a grey above the largest' 'row 2 a grey is 99, more than its largest, 98' 'P5 2 2 98 abac'
bad_input 'a plain grey above the largest' 'a grey is more than 98' 'P2 2 2 98 1 2 3 99'
bad_input 'letters among the greys' 'where a grey should be' 'P2 2 2 98 1 2 x 4'

# All ranks lack memory then, but one sentence is enough.
bad=0
for ((i = 0; i < 10; i++)); do
    printf 'P5 900000 900000 255 abc' | run 4 - -o result >said 2>&1
    [ "$(grep -c '^heat: ' said)" = 1 ] || bad=1
done
ok 'says once that there is no memory' $bad

refused 'a missing input' 'cannot read nothing: No such file.*--make' nothing -o old
refused 'a directory as input' 'cannot read \.\.: Is a directory' .. -o old
refused 'no input' 'no input' -o old
refused 'two inputs' 'more than one input' old old -o new
refused 'no output' 'no output' old
refused 'an unknown option' 'no such option as --quick\..*Try --help' old -o new --quick
refused 'an unknown option before others' 'no such option as --foo=1\.' --foo=1 -n 3 old -o new
refused 'an unknown letter' 'no such option as -q\.' old --keep=none -qo new
refused 'an option without its value' 'the value of -o is missing' old -o
refused 'a long option without its value' 'the value of --keep is missing' old -o new --keep
refused 'a value where there is none' 'no such option as --help=3' old -o new --help=3
refused 'a wrong number of iterations' 'whole number' old -o new -n 10x
refused 'too many iterations' 'whole number' old -o new -n 99999999999999999999
refused 'a wrong epsilon' 'number of greys' old -o new -e nan
refused 'a wrong grey to keep' '--keep wants' old -o new --keep black,65536
refused 'a wrong size' '--make wants' --make 10x new
refused 'a size of nothing' '--make wants' --make 0x10 new
refused 'nothing to draw' 'no file to draw' --make 10x10
refused 'an output in no directory' 'cannot write nowhere/file: No such file.*exists' old -o nowhere/file
refused 'a drawing in no directory' 'cannot write nowhere/file: No such file' --make 9x9 nowhere/file
refused 'a device as output' 'not a regular file' old -o /dev/null
refused 'a directory as output' 'not a regular file' old -o ..
refused 'one file for both outputs' 'written twice' old -o old --colour ./old
"$program" --make 1000x900 many
# The limit leaves room for the memory of the library, which counts as files.
printf '#!/usr/bin/env bash\ntrap "" XFSZ\nulimit -f 12000\nexec "%s" "$@"\n' "$program" >limited
"$program" --make 4000x3500 huge
chmod +x limited
program=$dir/limited refused 'an output that does not fit' 'cannot write .*: File too large.*Make room' \
    ../huge -n 1 -o old

ranks() { # of the job in the directory "here"
    local exe
    while read -r exe; do
        if [ "$(readlink "${exe%exe}cwd")" = "$dir/here" ]; then
            exe=${exe#/proc/}
            echo "${exe%/exe}"
        fi
    done < <(find /proc/[0-9]*/exe -lname "$(realpath "$program")" 2>/dev/null)
}

# A rank is killed at some moment: the job fails, or had all but ended; the output is the old or the new one, and
# neither a file nor a process is left.
run 4 many -o expected -n 1200 >said 2>&1
bad=0
killed=0
for delay in 0.02 0.04 0.08 0.12 0.20 0.30 0.45 0.60; do
    mkdir here && cp byte here/old
    (cd here && run 4 ../many -o old -n 1200) >said 2>&1 &
    job=$!
    sleep $delay
    mapfile -t running < <(ranks)
    if [ ${#running[@]} -gt 0 ]; then
        kill -9 "${running[killed % ${#running[@]}]}" 2>/dev/null && killed=$((killed + 1))
    fi
    status=0
    wait $job || status=$?
    if cmp -s expected here/old; then
        now='the new output'
    elif [ $status != 0 ] && [ $status != 124 ] && cmp -s byte here/old; then
        now='the old output'
    else
        now='A WRONG OUTPUT'
        bad=1
    fi
    echo "# a rank killed after $delay s: $now, status $status"
    if [ "$(ls -A here)" != old ] || [ -n "$(ranks)" ]; then
        sed 's/^/# /' said
        ls -A here
        bad=1
    fi
    rm -rf here
done
[ $killed -gt 0 ] || bad=1
ok 'leaves nothing behind when a rank is killed' $bad

# With --keep-going nobody ends the others: they find out.
mkdir here && cp byte here/old
(cd here && timeout 100 "$runnel" run --keep-going -n 4 "$program" ../many -o old -n 1000000 -e 0) >said 2>&1 &
job=$!
for ((i = 0; i < 300; i++)); do
    sleep 0.1
    mapfile -t running < <(ranks)
    [ ${#running[@]} -lt 4 ] || break
done
kill -9 "${running[1]}"
status=0
wait $job || status=$?
[ $status != 0 ] && [ $status != 124 ] && [ "$(ls -A here)" = old ] && cmp byte here/old && [ -z "$(ranks)" ]
ok 'ends when a rank is killed, also with --keep-going' $?

exit $failed
