#!/usr/bin/env bash
# The checks find what they are for: each gets a clean tree, then one planted fault that it has to name with file and line.
set -u
source_tree=${RUNNEL_SOURCE:-$(dirname "${BASH_SOURCE[0]}")/../..}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/base" "$tree/src/ring" "$tree/src/fm" "$tree/include/runnel" "$tree/man"
cp -r "$source_tree/scripts" "$source_tree/.clang-format" "$tree/"
status=0

clean() {
    cat >"$tree/include/runnel/fm.h" <<'EOF'
/* Says how many. */
int FM_count(void);
EOF
    printf '#include "ring/ring.h"\n#include <runnel/fm.h>\n' >"$tree/src/fm/fm.c"
    printf '#include <string.h>\n\n#include "base/base.h"\n' >"$tree/src/ring/ring.h"
    printf 'int rnl_base;\n' >"$tree/src/base/base.h"
    printf 'FM_count(3)\n\n# NAME\n\nFM_count - counts\n' >"$tree/man/FM_count.3.scd"
    : >"$tree/README.md"
}
# expect NAME TEXT COMMAND...: fails, and says TEXT; with an empty TEXT it succeeds
expect() {
    local name=$1 text=$2 said
    shift 2
    if said=$("$@" 2>&1); then
        if [ -z "$text" ]; then echo "ok - $name"; return; fi
    elif [ -n "$text" ] && grep -qF -- "$text" <<<"$said"; then
        echo "ok - $name"
        return
    fi
    printf 'not ok - %s\n%s\n' "$name" "$said"
    status=1
}

clean
expect "layers: a clean tree passes" "" "$tree/scripts/check-layers"
printf '#include "ring/ring.h"\n' >>"$tree/src/base/base.h"
expect "layers: base includes ring" "src/base/base.h:2: ring/ring.h" "$tree/scripts/check-layers"
clean
printf '#  include "../fm/fm.h"\n' >>"$tree/src/ring/ring.h"
expect "layers: a way around through .." "src/ring/ring.h:4: ../fm/fm.h" "$tree/scripts/check-layers"
clean
printf '#include <runnel/fm.h>\n' >>"$tree/src/ring/ring.h"
expect "layers: ring includes the header of fm" "src/ring/ring.h:4: runnel/fm.h" "$tree/scripts/check-layers"
clean
printf '#include "base/base.h"\n' >>"$tree/include/runnel/fm.h"
expect "layers: a public header includes an internal one" "include/runnel/fm.h:3: base/base.h" "$tree/scripts/check-layers"
clean
mkdir "$tree/src/other"
printf '#include "base/base.h"\n' >"$tree/src/other/other.h"
expect "layers: a folder outside the order" "src/other/other.h:1:" "$tree/scripts/check-layers"
rm -r "$tree/src/other"

clean
expect "docs: a clean tree passes its headers" "ok - fm.h: every function is in a manual page" \
    sh -c "'$tree/scripts/check-docs'; false"
printf 'int FM_more(void);\n' >>"$tree/include/runnel/fm.h"
expect "docs: a function in no manual page" "fm.h:3: FM_more is in no manual page" "$tree/scripts/check-docs"
printf '\nint FM_other(int (*callback)(int));\n' >>"$tree/include/runnel/fm.h"
expect "docs: a function without a comment" "fm.h:5: FM_other has no comment" "$tree/scripts/check-docs"
clean
printf 'see [the design](doc/DESIGN.md)\n' >"$tree/README.md"
expect "docs: a dead link" "README.md:1: doc/DESIGN.md" "$tree/scripts/check-docs"

# check-single asks meson what is in the suite: here one that knows a script, which starts build/tests/starts.
mkdir -p "$tree/bin" "$tree/build/tests" "$tree/build/examples" "$tree/build/tools" "$tree/tests/multi"
printf '#!/bin/sh\necho "runnel:multi / multi-multi_test_x_sh"\n' >"$tree/bin/meson"
chmod +x "$tree/bin/meson"
# shellcheck disable=SC2016
printf '"$RUNNEL_BUILD/tests/starts" 3\n' >"$tree/tests/multi/test_x.sh"
# shellcheck disable=SC2317 # expect calls it
single() { (cd "$tree" && PATH="$tree/bin:$PATH" scripts/check-single build); }
compile() { # compile PROGRAM TEXT
    printf '%s\n' "$2" | "${CC:-cc}" -x c -o "$1" -
}
one='int main(void) { return 0; }'
two='#include <pthread.h>
int main(void) { pthread_t t; return pthread_create(&t, 0, 0, 0); }'
compile "$tree/build/tools/runnel" "$one"
compile "$tree/build/tests/starts" "$one"
compile "$tree/build/tests/start" "$two" # named by nobody
expect "single: too few programs to believe it" "only 2 programs found" single
compile "$tree/build/tests/starts" "$two"
expect "single: a program of two threads that a script starts" "starts (of multi/test_x.sh) can create threads" single

if command -v clang-format-14 >/dev/null; then
    clean
    expect "format: a clean tree passes" "" "$tree/scripts/check-format"
    printf 'int  x;\n' >>"$tree/src/base/base.h"
    expect "format: two spaces" "src/base/base.h:2" "$tree/scripts/check-format"
    clean
    printf '/* %0130d */\n' 0 >>"$tree/src/base/base.h"
    expect "format: a line of 136 columns" "src/base/base.h:2" "$tree/scripts/check-format"
    clean
    printf '#define X\t1\n' >>"$tree/src/base/base.h"
    expect "format: a tab" "src/base/base.h:2" "$tree/scripts/check-format"
else
    echo "ok - format # SKIP no clang-format-14"
fi
expect "mutants: a name that none has" "no planted bug is called TYPO" "$source_tree/tests/mutants/run" TYPO
expect "mutants: ... that none of the swarm's has" "no planted bug of the swarm's is called position-unchecked" \
    "$source_tree/tests/mutants/run" --swarm position-unchecked
exit $status
