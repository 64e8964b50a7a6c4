#!/usr/bin/env bash
# runnel paper new and build: a folder for a protocol of one's own, the system that is made of it, in every command that takes
# one, and what is refused. From the build tree, and once more as it is installed.
# shellcheck disable=SC2016,SC2154,SC2034 # programs for bash -c; variables of checks.sh; what a failed case shows
# shellcheck source=tests/myrinet/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
needs_commands clang-14 llvm-objcopy-14 llvm-dwarfdump-14 cc meson
cd "$work" || exit 1
has() { grep -q -e "$2" "$work/out"; ok "$1" $?; } # NAME WORDS: what the last command printed
says() { grep -q -e "$2" "$work/err"; ok "$1" $?; }
changed() { # FILE SED: of a new folder, broken; built again by the next case
    rm -rf broken && paper new broken >/dev/null && sed -i "$2" "broken/$1" && ! cmp -s "broken/$1" "mine/$1"
}

goes_round() { # WHERE: from nothing to a trace
    check "$1: a folder is made" paper new mine
    check "$1: it has what it says, under its name" bash -c 'for f in layout.h firmware.c host.c native.c README.md; do
        [ -s mine/$f ] || exit 1; done; grep -q "name = \"mine\"" mine/host.c && ! grep -rqE "\<(my_|NAME\>)" mine'
    check "$1: it is built, without a warning" bash -c '"$0" paper build mine && [ ! -s "$1" ]' "$RUNNEL" "$work/err"
    has "$1: its size is told" "^mine/mine.so: [0-9]* bytes of firmware, [0-9]* bytes of the card"
    check "$1: it runs" paper run mine
    has "$1: every message arrives, and arrives right" "messages 1000 sent, 1000 received, 0 wrong"
    check "$1: by the path of its object, it is the same" bash -c '
        a=$("$0" paper run mine) && b=$("$0" paper run ./mine/mine.so) && c=$(cd mine && "$0" paper run mine.so) &&
        [ "$a" = "$b" ] && [ "$a" = "$c" ]' "$RUNNEL"
    check "$1: a trace names the functions of its firmware" bash -c '"$0" paper trace mine >"$1" &&
        for part in "0  *firmware  fetch" "1  *firmware  deliver" "1  *firmware  start host DMA"; do
            grep -q " $part$" "$1" || exit 1
        done' "$RUNNEL" "$work/traced"
    check "$1: a profile has the lines of its own source" bash -c '
        line=$(grep -n "card.out\[padded" mine/firmware.c | cut -d: -f1) && "$0" paper profile mine >"$1" &&
        grep -q "^mine/firmware.c: cycles per message" "$1" &&
        grep -q "^firmware.c  *$line  fetch  *[0-9]" "$1" && grep -q "^nic.h .* nic_send " "$1"' "$RUNNEL" "$work/profile"
}

goes_round "from the build tree"
is_usage "a folder that is there" "mine is there already, and is left as it is" paper new mine
is_usage "a name with a dash" "cannot be the name of a system" paper new my-own
is_usage "a path that ends in no name" "cannot be the name of a system" paper new ./my-own
is_usage "a path into a folder that is not there" "none/other lies in a folder that is not there" paper new none/other
is_usage "a name with a digit first" "cannot be the name of a system" paper new 2nd
is_usage "the name of a system that is there" "there is a system 'pm' already" paper new pm
is_usage "no name" "say how it is called" paper new
is_usage "a step that the tutorial has not" "has no step 'none'" paper new other --from none
check "nothing was made by any of these" bash -c '[ "$(echo *)" = "err mine out profile traced" ]'
check "a sweep, from where its name is no path" bash -c 'cd mine && "$0" paper sweep mine.so --over size=4,64 | grep -q "^ *64  *[0-9.]*$"' "$RUNNEL"
check "the matrix has a row more" bash -c '"$0" paper matrix mine --count 4 >"$1" &&
    [ "$(grep -c "^mine " "$1")" = 3 ] && [ "$(grep -c "^simple " "$1")" = 3 ]' "$RUNNEL" "$work/matrix"
check "the matrix as JSON" bash -c '"$0" paper matrix ./mine/mine.so --count 4 --json | python3 -c "
import json, sys
rows = json.load(sys.stdin)
assert rows[-1][\"system\"] == \"mine\" and rows[-1][\"one_way_us\"] > 0, rows[-1]"' "$RUNNEL"
check "a difference of it and a built-in one, stage for stage" bash -c '"$0" paper diff mine simple >"$1" &&
    grep -q "^mine: mine on H-PP" "$1" && grep -q "^  deliver  *[0-9]" "$1"' "$RUNNEL" "$work/matrix"
check "a path is taken, and its last part is the name" bash -c 'mkdir -p below/here && "$0" paper new below/here/other/ |
    grep -q "next: runnel paper build below/here/other$" && grep -q "name = \"other\"" below/here/other/host.c &&
    "$0" paper build below/here/other && "$0" paper run below/here/other --count 20' "$RUNNEL"
is_usage "a row that the matrix has" "simple is in the matrix anyhow" paper matrix simple
is_usage "a system with no place in the matrix" "probe has none of the messages" paper matrix probe
check "a value of its machine is changed as for others" bash -c '
    a=$("$0" paper run mine --json) && b=$("$0" paper run mine --json --set dma_setup=5) && [ "$a" != "$b" ]' "$RUNNEL"
check "the firmware is built for this machine, and holds what it promises there" bash -c '
    "$0" paper build --native mine && mine/mine-native 100000 3 | grep -q "^ok - mine: "' "$RUNNEL"
changed firmware.c '/card.dropped++/d'
check "a firmware that loses packets still builds for this machine" paper build --native broken
check "whose run is told so that it can be had again" bash -c '
    broken/broken-native 100000 7 >"$0"; grep -q "(turn [0-9]* of seed 7)$" "$0" && turn=$(sed "s/.*(turn \([0-9]*\).*/\1/" "$0") &&
    a=$(cat "$0") && [ -n "$a" ] && ! b=$(broken/broken-native $((turn + 1000)) 7) && [ "$a" = "$b" ]' "$work/out"
for words in --help abc "0" "-1" "5000 x" "5000 1 1"; do
    read -r -a all <<<"$words"
    check "$words is no run of it" bash -c 'broken/broken-native "$@" 2>"$0" ; [ $? = 64 ] && grep -q "Usage: .*TURNS \[SEED\]" "$0"' \
        "$work/out" "${all[@]}"
done
check "and is found out there" bash -c '! broken/broken-native 100000 >"$0" && grep -q "a packet is lost" "$0"' "$work/out"
changed firmware.c 's/^    l->area = card.area;$/    l->area = card.receive[RING + (card.area \& 1) * 99999];/'
paper build --native broken >/dev/null
check "the sanitizer sees what is undefined" bash -c '! broken/broken-native 1000 2>"$0" && grep -q "runtime error" "$0"' "$work/err"

# What a run says of a protocol that does not work.
changed host.c 's/bytes, slot \* SLOT};/bytes, (slot ^ 1) * SLOT};/' # the payload of another slot
paper build broken >/dev/null
for command in run trace "sweep --over size=4,64" profile; do
    read -r -a asked <<<"$command"
    status=0
    paper "${asked[0]}" broken "${asked[@]:1}" >out 2>err || status=$?
    [ $status = 1 ] && grep -q "broken: [0-9]* of [0-9]* messages came with bytes that its sender did not send, the first at node 1 at" err
    ok "wrong bytes are an error of ${asked[0]}" $?
done
changed firmware.c '0,/    if (to) {/s//    if (0) {/' # every packet is dropped
paper build broken >/dev/null
refuses "a trace of a message that does not arrive is none" "1 of 1 messages did not arrive" paper trace broken
has "but shows where it was last" "of which 1 did not arrive"
has "to its last step" "1  *receive  *receive, 8 bytes"
refuses "who waits for it is named, with the call, the place and the time" \
    "nothing more happens that could wake them: node 0 in myri_task_poll of host address [0-9]* since [0-9.]* us, node 1 in myri_task_poll of host .* no card's firmware finds anything to do; see runnel paper trace" \
    paper run broken
changed firmware.c '/nic_arm(SRAM_AT/d'
paper build broken >/dev/null
refuses "a port that is never opened is named" "a packet waits at card 1, whose port is not open" paper run broken
refuses "and the way there is traced" "wake them: node 0 in myri_task_poll" paper trace broken --measure one-way
has "up to there" "which failed; its error counts from 1000 us before"
changed firmware.c 's/card.send\[l->free_at\].flag = FREE;/(void)l;/'
paper build broken >/dev/null
refuses "a descriptor that is never free is named as its layout has it" "node 0 in myri_task_await of card+[0-9]* since" paper run broken
changed firmware.c 's/^    uint32_t status = nic_read(ISR);/&\n    card.dropped++;/; s/if (d->flag != POSTED)/if (d->flag != 77)/'
paper build broken >/dev/null
refuses "a run that its limit ends says so, and which line of firmware goes on" \
    "the run's limit of [0-9]* us ended it, as 2 tasks were not done: node 0 in .*; card 0 works on, at firmware.c:[0-9]*" \
    paper run broken --count 2

refuses "a folder that is not there" "nowhere: No such file" paper build nowhere
refuses "what is no folder" "mine/host.c is no folder" paper build mine/host.c
refuses "no folder at all" "name a folder" paper build
mkdir -p empty my-own
refuses "a folder without sources" "empty has no firmware.c" paper build empty
refuses "a folder whose name cannot be a system's" "cannot be that of a system" paper build my-own
changed firmware.c 's/^    l->sending = 0;$/&\n    missing(l);/; s/RARELY(l->sending)/RARELY(l->sending_)/'
refuses "an error in the firmware, with the compiler's words" "^firmware.c:[0-9]*:[0-9]*: error: no member named 'sending_'" paper build broken
says "and ours" "^runnel paper: firmware.c does not compile"
check "and nothing half made" test ! -e broken/broken.so
changed host.c 's/s->taken++;/s->taken_++;/'
refuses "an error in the host code, with the compiler's words" "^host.c:[0-9]*:[0-9]*: error: .*taken_" paper build broken
says "and ours" "^runnel paper: host.c does not compile"
changed host.c 's/myri_system_here/myri_system_there/'
refuses "host code without its entry" "host.c has to define const struct myri_system myri_system_here" paper build broken
refused() { # NAME WORDS FILE SED: the compilers take it; nothing is left of it, and the status is a refused source's
    local name=$1 words=$2 status=0
    changed "$3" "$4"
    paper build broken >out 2>err || status=$?
    [ $status = 1 ] && grep -q -e "$words" err && [ ! -e broken/broken.so ]
    ok "$name" $?
}
line=$(grep -n 'myri_task_copy(t, s->area' mine/host.c | cut -d: -f1)
refused "a function that there is not, with its line" "host.c:$line uses myri_task_copies, which neither it nor runnel has" \
    host.c 's/myri_task_copy(t, s->area/myri_task_copies(t, s->area/'
check "and once, not as if it had been loaded" bash -c '! grep -q "cannot be loaded" "$0"' "$work/err"
refused "a function that is declared, and nowhere there" "host.c:[0-9]* uses elsewhere, which neither it nor runnel has" \
    host.c 's/^    want_descriptor(t, s);/    extern void elsewhere(void);\n    elsewhere();\n&/'
while read -r name symbol says change; do
    line=$(grep -n '^    l->area = card.area;' mine/firmware.c | cut -d: -f1)
    refused "$name in firmware, with its line and what to do" "firmware.c:$line uses $symbol, .*$says" firmware.c \
        "s/^    l->area = card.area;/    l->area = $change;/"
done <<'ALL'
multiplication __mulsi3 shifts.and.adds card.area * card.errors
division __udivsi3 masks card.area \/ card.errors
remainder __umodsi3 masks card.area % card.errors
floating __muldf3\|__floatunsidf integers (uint32_t)(card.area * 1.5)
ALL
changed host.c '/\.receive = receive,/d; s/^static uint32_t receive/uint32_t receive/'
refuses "an entry that lacks something" "does not say .receive" paper build broken
changed layout.h 's/    uint32_t area; .*/&\n    uint32_t more[300000];/'
refuses "a firmware that no card has room for" "more than the .* bytes of SRAM" paper build broken
changed layout.h 's/    uint32_t area; .*/&\n    uint32_t more[40000];/'
check "a firmware for a large card is built" paper build broken
is_usage "and does not fit into a small one" "the firmware needs 1[0-9]* bytes of SRAM .* the card has 131072" \
    paper run broken --set sram=128
changed host.c 's/^    want_descriptor(t, s);/&\n    if (bytes == 4)\n        *(volatile int *)(uintptr_t)side->got = 1;/'
paper build broken >/dev/null 2>&1
check "host code that dies tells its line" bash -c '
    ! "$0" paper run broken 2>"$1" && grep -q "host code of .*broken.so got signal 11, at address" "$1" &&
    $(grep -o "addr2line -fe [^ ]* 0x[0-9a-f]*" "$1" | tail -n 1) | grep -q "host.c:$(grep -n "volatile int" broken/host.c | cut -d: -f1)"' \
    "$RUNNEL" "$work/died"
changed host.c 's/^    want_descriptor(t, s);/    volatile char large[100000];\n    large[0] = 1;\n&/'
paper build broken >/dev/null 2>&1
check "a stack that is overrun is told, and not written over" bash -c '
    ! "$0" paper run broken 2>"$1" && grep -q "broken.so got signal 11, .*stack has 64 KB" "$1"' "$RUNNEL" "$work/died"
changed host.c 's/^    return 0;/    return -1;/'
paper build broken >/dev/null 2>&1
refuses "host code that gives up without a word" "does not open a side, and has not said why" paper run broken
changed host.c 's/RING \* SLOT, 1)/RING * SLOT, 0)/'
paper build broken >/dev/null 2>&1
refuses "a fault of the machine, as with other systems" "its page [0-9]* is not pinned" paper run broken
changed host.c 's/^    return got;/    if (s->taken == 5)\n        for (volatile int i = 0;; i++)\n            ;\n&/'
paper build broken >/dev/null 2>&1
line=$(grep -n 'volatile int i = 0' broken/host.c | cut -d: -f1)
refuses "host code that loops without a call is ended" "broken.so has computed for more than 1 s without a call of the machine" \
    timeout 60 "$RUNNEL" paper run broken --timeout 1
cp err looped
check "and tells its line" bash -c '$(grep -o "addr2line -fe [^ ]* 0x[0-9a-f]*" "$0" | tail -n 1) | grep -q "host.c:\($1\|$(($1 + 1))\)"' \
    "$work/looped" "$line"
is_usage "a timeout of what is built in" "timeout has no effect on simple" paper run simple --timeout 5
check "who computes long, but calls, is not ended" paper run mine --count 20000 --timeout 0.1

# A build that is ended ends its compilers, and leaves nothing.
changed firmware.c 's/^    uint32_t status = nic_read(ISR);/&\n    EVERY/'
awk '/^    EVERY/ { for (i = 0; i < 4000; i++) print "    if (card.area == " 7 * i + 3 ") card.errors = card.dropped + " i ";"; next } 1' \
    broken/firmware.c >large.c && mv large.c broken/firmware.c
mkdir made
TMPDIR=$work/made "$RUNNEL" paper build broken >out 2>err &
builder=$!
for ((i = 0; i < 600 && $(pgrep -fc "clang-14 .*$work/made/") == 0; i++)); do sleep 0.05; done
check "a large firmware is being compiled" pgrep -f "clang-14 .*$work/made/"
kill $builder
wait $builder
status=$?
for ((i = 0; i < 200 && $(pgrep -fc "$work/made/") > 0; i++)); do sleep 0.05; done
check "a build that is ended takes its compilers with it" bash -c '[ "$1" = 143 ] && [ ! -e "$0/broken/broken.so" ] && ! pgrep -f "$0/made/[t]mp" && [ -z "$(ls "$0/made")" ]' \
    "$work" $status
changed host.c 's/^    want_descriptor(t, s);/&\n    if (side->nodes > 2) myri_task_copy(t, 0xfffffff0, from, bytes);/'
paper build broken >/dev/null 2>&1
refuses "a fault under overload, which is none of a ring's" "copies 128 bytes outside its memory" paper matrix broken --count 4
for name in 'a\\"b' 'a b' 'a\\nb' pm-own; do
    refused "a name that would break what is printed: $name" "cannot be the name of a system" host.c \
        "s/\.name = \"broken\"/.name = \"$name\"/"
done
mkdir bin
for tool in bash awk sed od sort mktemp rm mv cmp cc gcc as ld collect2 cat; do
    ln -s "$(command -v "$tool")" "bin/$tool" 2>/dev/null
done
refuses "no compiler for LANai: the packages that have it" "clang-14 is missing.*install the packages clang-14 and llvm-14" \
    env PATH="$work/bin" "$RUNNEL" paper build mine
refuses "no compiler for the host's side" "there is no compiler no-such-cc" env CC=no-such-cc "$RUNNEL" paper build mine
check "a compiler with words behind it" env CC="cc -DANY=1" "$RUNNEL" paper build mine

is_usage "a path that leads nowhere" "nowhere/x.so: No such file" paper run nowhere/x.so
is_usage "a folder that was not built" "empty has no empty.so: runnel paper build empty makes it" paper run empty
is_usage "an option that there is not, last" "there is no option --foo; runnel paper run --help lists them" paper run simple --foo
is_usage "and with something behind it" "there is no option --foo; runnel paper run --help" paper run simple --foo 3
is_usage "and with an equals sign" "there is no option --foo; runnel paper run --help" paper run simple --foo=3
is_usage "an option without its value" "--size takes a value: --size BYTES (runnel paper run --help)" paper run simple --size
is_usage "an option with the next one behind it" "--plot takes a value: --plot DIR" paper sweep simple --plot --over size=4,8
is_usage "the name, in the folder itself" "no system 'mine'; that of this folder is named by a path: . or ./NAME.so" \
    bash -c 'cd mine && "$0" paper run mine' "$RUNNEL"
changed layout.h 's/RING = 16,/RING = 12,/'
refuses "a ring that no mask counts" "RING has to be a power of two" paper build broken
is_usage "a system of no name" "there is no system 'other'.* runnel paper new makes, is named by the path of its folder" paper run other
cp mine/README.md text.so
is_usage "a file that is no library" "text.so cannot be loaded .*runnel paper build makes" paper run text.so
for bytes in 9000 4096 40; do
    head -c $bytes mine/mine.so >cut.so
    is_usage "an object that ends after $bytes bytes" "cut.so cannot be loaded .*at $bytes bytes.*runnel paper build" paper run ./cut.so
done
head -c -1 mine/mine.so >cut.so
is_usage "an object without its last byte" "it ends before what it says that it has" paper run ./cut.so
echo 'int x;' | cc -shared -fPIC -x c - -o library.so
is_usage "a library that is no system" "it has no symbol myri_kit" paper profile ./library.so
while read -r name version layout; do
    {
        echo '#include "sim/myrinet/kit/kit.h"'
        echo "const struct myri_kit myri_kit = {MYRI_KIT_VERSION + $version, MYRI_KIT_LAYOUT + $layout, 0, 0, 0, 0, 0};"
    } | cc -std=gnu11 -shared -fPIC -I"$tree" -I"$tree/src" -x c - -o release.so
    is_usage "$name" "release.so was built for another release of runnel" paper trace release.so
done <<<"$(printf 'another_version 1 0\nother_structs 0 1\n')"
touch -d '+1 hour' mine/layout.h
check "sources newer than the object are told of" paper run mine
says "with what to do" "mine/layout.h has been changed since .*: runnel paper build mine"

# As it is installed, below a folder that is none of its prefix.
rm -rf mine
check "it is installed" env DESTDIR="$work/dest" meson install -C "$build" --no-rebuild --tags runtime,devel
RUNNEL=$(find "$work/dest" -path '*/bin/runnel')
[ -n "$RUNNEL" ] || exit 1
goes_round "as installed"
check "nothing of the build tree is in what it makes" bash -c '! grep -aq "$0" mine/mine.so' "$tree"
for file in paper-machine.md results/log.md rows.csv; do
    check "the manual's $file is installed" bash -c 'cmp "$0"/*/*/share/doc/runnel/"$1" "$2"' "$work/dest" "$file" \
        "$(find "$tree/doc" "$tree/sim/myrinet" -path "*/$file")"
done
check "the headers are where the templates and the tutorial say" bash -c '
    d=include/runnel/paper/sim/myrinet/hw && [ -s "$(echo "$0"/*/*/$d/nic.h)" ] && [ -s "$(echo "$0"/*/*/$d/hw.h)" ] &&
    grep -q "$d where" mine/host.c && grep -q "$d where" mine/firmware.c' "$work/dest"
for step in simple credits combined; do
    cp -r "$work/dest/"*/*/share/doc/runnel/examples/paper/$step . && check "the installed example $step is built" paper build $step &&
        check "$step runs" paper run ./$step --count 20
done
find "$work/dest" -path '*/runnel/paper/*' -name kit.h -delete
is_usage "an installation without the headers" "the headers for protocols of one's own are not there" paper build mine
exit "$failed"
