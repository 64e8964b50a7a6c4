#!/usr/bin/env bash
# examples/heat against a plain serial computation in Perl: pictures of many shapes and forms on 1 to 8 ranks, byte for
# byte; and what it says and leaves behind when it cannot begin.
# Prints "ok - name" or "not ok - name"; exits 77 if something is missing.
# shellcheck disable=SC2016,SC2154 # test.sh sets failed; Perl programs in single quotes
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
draw column P5 1 301 255
draw square P2 2 2 9
draw flat P5 60 3 65535
printf 'P2 1 1 9 4' >cell

same 'a plain picture with comments' '1 2 3 5 7' plain 150 0
same 'a picture of bytes' '1 2 3 5 7' byte 150 0
same 'a picture of 16 bits' '1 2 3 5 7' wide 150 0
same 'a single column' '1 2 3 5 7' column 100 0
same 'one cell' '1 2 5' cell 20 0
same 'four cells' '1 2 3 7' square 40 0
same 'fewer rows than ranks' '4 5 8' flat 60 0
same 'no iteration' '1 3' byte 0 0
same 'until little changes' '1 2 3 5 7' byte 100000 0.5
# The last bits decide when nothing changes any more, and greys do not show them.
draw tiny P2 7 8 255
same 'until nothing changes at all' '1 2 3 5 7' tiny 6000 0

"$program" plain -o result -n 40 >said 2>&1 && perl reference plain 40 0 black white | cmp - result
ok 'runs without the launcher' $?

run 3 - -o result -n 40 <wide >said 2>&1 && perl reference wide 40 0 black white | cmp - result
ok 'reads standard input' $?

bad=0
run 3 byte -o result -n 40 --keep none >said 2>&1 && perl reference byte 40 0 | cmp - result || bad=1
run 3 byte -o result -n 40 --keep 7,white,100 >said 2>&1 && perl reference byte 40 0 7 100 255 | cmp - result || bad=1
ok 'keeps the greys that it is told to' $bad

bad=0
for n in 1 3; do
    run $n wide --colour colour$n -n 60 >said 2>&1 || bad=1
done
[ "$(head -c 2 colour1)" = P6 ] && cmp colour1 colour3 || bad=1
ok 'writes the same colours with 1 and 3 ranks' $bad

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
bad_input 'a header that ends early' 'ends within its header' 'P5 10 # 12'
bad_input 'a size that overflows' 'more than .* Scale' 'P5 1073741824 1073741824 255 a'
bad_input 'a truncated picture of 16 bits' 'truncated' 'P5 2 2 256 \0a\0b\0c\0'
bad_input 'a grey above the largest' 'row 2 a grey is 99, more than its largest, 98' 'P5 2 2 98 abac'

# All ranks lack memory then, but one sentence is enough.
bad=0
for ((i = 0; i < 10; i++)); do
    printf 'P5 900000 900000 255 abc' | run 4 - -o result >said 2>&1
    [ "$(grep -c '^heat: ' said)" = 1 ] || bad=1
done
ok 'says once that there is no memory' $bad

refused 'a missing input' 'cannot read nothing: No such file.*--make' nothing -o old
refused 'no output' 'no output' old
refused 'an unknown option' 'no such option as --quick\..*Try --help' old -o new --quick
refused 'too many iterations' 'whole number' old -o new -n 99999999999999999999
refused 'a wrong grey to keep' '--keep wants' old -o new --keep black,65536
refused 'an output in no directory' 'cannot write nowhere/file: No such file.*exists' old -o nowhere/file
refused 'one file for both outputs' 'written twice' old -o old --colour ./old
# The limit leaves room for the memory of the library, which counts as files.
printf '#!/usr/bin/env bash\ntrap "" XFSZ\nulimit -f 12000\nexec "%s" "$@"\n' "$program" >limited
"$program" --make 4000x3500 huge
chmod +x limited
program=$dir/limited refused 'an output that does not fit' 'cannot write .*: File too large.*Make room' \
    ../huge -n 1 -o old

exit "$failed"
