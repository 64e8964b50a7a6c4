#!/usr/bin/env bash
# The scripts that judge the tree, once each: a check finds the fault that is planted for it, a count is right.
# shellcheck source=tests/support/test.sh disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
mkdir -p "$dir"/{src/base,src/ring,include/runnel,man,tests,doc}
cp -r "$tree/scripts" "$tree/.clang-format" "$tree/Makefile" "$dir/"
cp "$tree/tests/run-summary" "$dir/tests/"
cd "$dir" || exit 1
shown=printed
# expect NAME TEXT COMMAND...: the command prints TEXT
expect() {
    local name=$1 text=$2
    shift 2
    "$@" >printed 2>&1
    grep -qF -- "$text" printed
    ok "$name" $?
}

printf '/* Counts. */\nint FM_count(void);\nint FM_more(void);\n' >include/runnel/fm.h
printf 'FM_count(3)\n\n# NAME\n\nFM_count - counts\n' >man/FM_count.3.scd
echo 'see [the design](doc/design.md)' >README.md
printf '#include "ring/ring.h"\n\nstruct rnl_both {\n    int  x;\n};\n' >src/base/base.h
printf 'struct rnl_both {\n    int x;\n};\nenum { RNL_ONE, RNL_TWO = (1, 2) };\n' >src/ring/ring.h
printf '#define RNL_TWO 2\nFM_count();\n' >src/base/base.c
printf '| **trial** | one round | - |\n' >doc/glossary.md
expect "check-layers: base includes ring" "src/base/base.h:1: ring/ring.h" scripts/check-layers
expect "check-layers: the core names an interface" "src/base/base.c:2: FM_count: only its own folder" scripts/check-layers
mkdir -p src/api/fm
printf "interface_sources = {\n    'fm': files(),\n}\n" >src/meson.build
printf '#include <runnel/fm.h>\n' >src/ring/early.c
expect "check-layers: the header of an interface of the build's list" "src/ring/early.c:1: runnel/fm.h: ring/ comes before api/fm/" scripts/check-layers
expect "check-docs: a function in no manual page" "fm.h:3: FM_more is in no manual page" scripts/check-docs
expect "check-docs: a dead link" "README.md:1: doc/design.md" scripts/check-docs
expect "check-names: a tag that two files define" "rnl_both: struct tag at src/base/base.h:3, struct tag at src/ring/ring.h:1" scripts/check-names
expect "check-names: a constant that is a macro elsewhere" "RNL_TWO: macro at src/base/base.c:1" scripts/check-names
printf 'int untold_bytes;\n' >src/base/word.c
expect "check-names: a word of no field" 'src/base/word.c:1: untold_bytes: the field'"'"'s word for "untold" is "not advertised"' scripts/check-names
expect "check-names: a term without a source" "**trial** has no source" scripts/check-names
if command -v clang-format-14 >/dev/null; then
    expect "check-format: two spaces" "src/base/base.h:4" scripts/check-format
else
    echo "ok - check-format # SKIP no clang-format-14"
fi
mkdir -p src/endpoint
yes 'int x;' | head -n 601 >src/endpoint/long.c
yes word | head -n 61 >src/endpoint/README.md
expect "check-sizes: a file of 601 lines" "src/endpoint/long.c: more than 600 lines" scripts/check-sizes
expect "check-sizes: a README of more than a page" "src/endpoint/README.md: more than 60 lines" scripts/check-sizes
sed -i 1d src/endpoint/long.c src/endpoint/README.md
# shellcheck disable=SC2016
expect "check-sizes: 600 lines and a page pass" "passed" sh -c 'scripts/check-sizes && echo passed'
rm -r src/endpoint
expect "make help lists the targets" "make check-all" make help
expect "figures: a file without marks is refused" "has no lines" scripts/figures --readme README.md --doc "$dir"

# Parts that run beside each other: what they count arrives, and one that is killed counts as a failure.
cat >parts.sh <<'END'
set -eu
dir=. tally=all.tally
: >"$tally"
source scripts/stages
good() { one good true || true; }
dead() { one before true || true; kill -KILL "$BASHPID"; }
aside good
aside dead
gather
tests/run-summary total "$tally"
END
expect "stages: of two parts, one is killed" "2 passed, 1 failed, 0 skipped" bash parts.sh
cat >cases.sh <<'END'
tests/run-summary one t tests sh -c 'echo "ok - a"; echo "not ok - b"; echo "ok - c # SKIP no root"; exit 1'
tests/run-summary one t "tests: more" sh -c 'echo no root; exit 77'
tests/run-summary one t "unit: x" sh -c 'echo "[ RUN      ] a"; echo "[       OK ] a"; echo "[ RUN      ] b"; exit 1'
tests/run-summary total t
END
expect "run-summary: cases of every kind" "2 passed, 2 failed, 2 skipped" sh cases.sh
rm -f t
expect "run-summary: the skips of a suite are one line" "skipped: tests: no root (c, more)" sh cases.sh
expect "affected: what a test of this build is made of" "unit-base-hist" "$tree/scripts/affected" --build "${RUNNEL_BUILD:-$source_tree/build}" \
    --files "$tree/src/base/hist.c"
# Builds that only say what they would have measured: the second is a quarter faster, and sends a tenth less.
for build in old:100:10 new:80:9; do
    IFS=: read -r name ns rate <<<"$build"
    mkdir -p "$name/tools" && : >"$name/build.ninja"
    {
        echo '#!/bin/sh'
        echo "echo '{\"test\":\"latency\",\"api\":\"fm\",\"bytes\":8,\"placement\":\"near\",\"value\":$ns,\"unit\":\"ns\"}'"
        echo "echo '{\"test\":\"rate\",\"api\":\"fm\",\"bytes\":8,\"placement\":\"near\",\"value\":$rate,\"unit\":\"M/s\"}'"
        echo "echo '{\"test\":\"rate\",\"api\":\"fm\",\"bytes\":8,\"placement\":\"far\",\"value\":null,\"unit\":\"M/s\"}'"
    } >"$name/tools/runnel"
    chmod +x "$name/tools/runnel"
done
# shellcheck disable=SC2317 # expect calls it
compared() { "$tree/scripts/compare" old new --trials 6 --worse 5 -- rate 2>/dev/null | tr -s ' ' ','; }
expect "compare: a faster row" "latency,fm,8,near,100,80,1.250,1.250,to,1.250,ns,faster" compared
expect "compare: a slower row" "rate,fm,8,near,10,9,0.900,0.900,to,0.900,M/s,slower" compared

# A suite whose sources make nothing, with compilers that are never called: for one MPI, and for the other when that has come.
mkdir -p suite/{bin,store,source}
printf 'IMB-%%:\n\ttouch $@\n' >suite/source/Makefile
printf '#!/bin/sh\n' | tee suite/bin/mpicc.openmpi >suite/bin/git
chmod +x suite/bin/*
# shellcheck disable=SC2317 # expect calls it
suite() {
    PATH=$dir/suite/bin:$PATH RUNNEL_SUITES=$dir/suite/store "$tree/scripts/suites" imb "$dir/suite/source" && echo suite/store/imb-built/*/IMB-RMA
}
expect "suites: built for the MPI that is here" "suite/store/imb-built/openmpi/IMB-RMA" suite
mkdir suite/store/mpich-built && : >suite/store/mpich-built/done
expect "suites: built for one that came later" "suite/store/imb-built/mpich/IMB-RMA" suite

# Machines that are played: what each says and how it ends are in QEMU_SAYS and QEMU_ENDS.
mkdir -p machine/store machine/bin build/tools
printf '#!/bin/sh\necho 1000000\n' >machine/store/tsc_khz
echo kernel >machine/store/vmlinux
echo image >machine/store/image.cpio
cat >machine/bin/qemu-system-x86_64 <<'END'
#!/bin/bash
while [ "$1" != -serial ]; do shift; done
echo "$QEMU_SAYS" >"${2#file:}"
eval "$QEMU_ENDS"
END
printf '#!/bin/sh\nexec true\n' | tee machine/bin/cpio >machine/bin/busybox
chmod +x machine/store/tsc_khz machine/bin/*
echo true >machine/run
# shellcheck disable=SC2317 # expect calls it
machine() { # SAYS ENDS [SECONDS]
    local code=0
    PATH=$dir/machine/bin:$PATH RUNNEL_VM=$dir/machine/store RUNNEL_BUILD=$dir/build QEMU_SAYS=$1 QEMU_ENDS=$2 VM_SECONDS=${3:-60} \
        "$tree/scripts/vm" one "$dir/machine/run" || code=$?
    echo "returned $code"
}
if [ "$(uname -m)" = x86_64 ]; then
    expect "vm: a status that looks like a signal's number" "returned 68" machine "== status 68 after 1 s" "exit 137"
    expect "vm: a status behind half a line" "returned 3" machine "no end of line== status 3 after 1 s" "exit 7"
    expect "vm: a machine that a signal ends" "a was ended by signal 9" machine "== up after 1 s" 'kill -9 $$'
    expect "vm: it returns no status" "returned 125" machine "== up after 1 s" 'kill -11 $$'
    expect "vm: a machine that ends without a status" "a ended without a status" machine "== up after 1 s" "exit 0"
    expect "vm: a machine that runs out of time" "returned 124" machine "== up after 1 s" "sleep 5" 1
fi
exit "$failed"
