#!/usr/bin/env bash
# The table of copies: whatever it says, bytes arrive; `runnel info` shows it; one that is damaged is as none; nothing is kept where there is no
# place for it. Times are never judged.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
shown='out err'
export RNL_COPIES=$dir/table

info() { timeout 60 "$runnel" info >"$dir/out" 2>"$dir/err" </dev/null; }
row() { sed -n "/^Copies into bulk areas/,/^\$/s/^  $1  *//p" "$dir/out"; }
# table NEAR FAR: words of src/base/copies.h
table() {
    (umask 077 && printf 'runnel copies 1\nprocessor %s\nnear %s 50\nfar %s 200\nend\n' "$processor" "$1" "$2" >"$dir/table")
}

info
processor=$(row "of processor" | awk '{ print $1 }')
[ -n "$processor" ] && row near | grep -q KiB && row far | grep -q KiB
ok "runnel info shows the table" $?
for word in 0000000000000000 1111111111100000 2222222222200001 3333333333300000; do
    table $word $word
    info
    if ! row near | grep -q 'a line crossed in 50 ns'; then
        echo "ok - bytes arrive by $word # SKIP this processor has no such copies"
        continue
    fi
    # bench checks every byte; 75: no repetition was undisturbed
    timeout 120 "$runnel" bench bandwidth fresh --api native,fm --size 100,4K,64K,1M --max-time 1 >"$dir/out" 2>"$dir/err"
    code=$?
    [ $code = 0 ] || [ $code = 75 ]
    ok "bytes arrive by $word" $?
done
table 4000000000000000 1111100000000000 # no such kind
cp "$dir/table" "$dir/before"
export RNL_COPIES=$dir/before
chmod 400 "$dir/before"
info
row near | grep -q 'rep movsb from 2 KiB'
ok "a word with an unknown kind is not believed" $?
RNL_COPIES='' info
row table | grep -q '^none' && row near | grep -q 'the defaults'
ok "without a place nothing is kept, and the defaults hold" $?
(unset RNL_COPIES && HOME='' XDG_CACHE_HOME='' timeout 60 "$runnel" run -n 2 true)
ok "a job starts without a home" $?
rm -f "$dir/table"
RNL_COPIES=$dir/table timeout 60 "$runnel" run -n 1 true && { [ ! -e "$dir/table" ] || [ "$(stat -c %a "$dir/table")" = 600 ]; } &&
    [ "$(find "$dir" -name 'table.*' | wc -l)" = 0 ]
ok "runnel run leaves a whole table, or none where it was disturbed" $?
exit "$failed"
