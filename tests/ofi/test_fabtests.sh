#!/usr/bin/env bash
# libfabric's own tests, fabtests, on the provider, unmodified: two processes each that check what comes, and what a program
# may ask of objects. `test_fabtests.sh` runs each once, `test_fabtests.sh all` in all sizes and as often as they do themselves;
# `test_fabtests.sh all REGEX` those whose names match. Those for connections, scalable endpoints and
# shared vectors are not for this provider, and are seen to be refused. So is fi_av_test, which takes names of
# hosts for addresses, as libfabric's own provider for shared memory refuses it (FI_PROVIDER=shm fi_av_test -p shm: 61, too).
# The run-time library of the sanitizer that a provider was built with, if any, is preloaded into the programs: what it
# finds makes a case red.
# shellcheck disable=SC1091,SC2154,SC2034,SC2317,SC2086 # test.sh sets and shows them; what case_of calls; lists of words
. "$(dirname "$0")/../support/test.sh"
needs_files
what=${1:-core}
only=${2:-.}
provider=$build/adapters/ofi/librnl-fi.so
if [ ! -e "$provider" ]; then
    echo 'built without libfabric (libfabric-dev)'
    exit 77
fi
if ! fabtests=$("$tree/scripts/suites" fabtests); then
    echo "${fabtests##*$'\n'}"
    exit 77
fi
cd "$dir" || exit 1
export TMPDIR=$dir FI_PROVIDER_PATH=$dir/provider FI_PROVIDER=rnl
# A newer libfabric takes no provider that was compiled for an older one: the same files, flags and objects once more, for this one.
mkdir provider
python3 - "$build" "$fabtests/include" provider <<'END' >said 2>&1 || { cat said; echo 'not ok - the provider compiles for the libfabric of the suite'; exit 1; }
import json, os, shlex, subprocess, sys

build, include, out = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3])
new = {}
for entry in json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8")):
    words = shlex.split(entry["command"])
    name = words[words.index("-o") + 1]
    if "librnl-ofi.a.p" not in name:
        continue
    new[name] = os.path.join(out, os.path.basename(name))
    words[words.index("-o") + 1] = new[name]
    words[words.index("-MF") + 1] = new[name] + ".d"
    subprocess.run(words[:1] + ["-I" + include] + words[1:] + ["-w"], cwd=entry["directory"], check=True)
link = subprocess.run(["ninja", "-C", build, "-t", "commands", "adapters/ofi/librnl-fi.so"], check=True, stdout=subprocess.PIPE)
words = shlex.split(link.stdout.decode().splitlines()[-1])
words[words.index("-o") + 1] = os.path.join(out, "librnl-fi.so")
subprocess.run([new.get(w, w) for w in words], cwd=build, check=True)
with open("compiler", "w", encoding="utf-8") as f:
    f.write(words[0])
END
sanitizer=$(grep -oaE '__(asan|tsan)_init' "$provider" | sed -n '1s/__\(.*\)_init/\1/p')
set_up=()
for library in ${sanitizer:+lib$sanitizer.so libclang_rt.$sanitizer-$(uname -m).so}; do
    library=$($(<compiler) -print-file-name="$library") # that of clang for threads cannot be preloaded; that of gcc serves it, too
    if [ "${#set_up[@]}" = 0 ] && [ -e "$library" ] && (LD_PRELOAD=$library exec true) 2>>said; then
        set_up=(env LD_PRELOAD="$library" ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1)
        [ "$sanitizer" = asan ] || set_up+=(FI_RNL_AUTO_PROGRESS=1) # the programs have one thread each
    fi
done
if [ -n "$sanitizer" ] && [ "${#set_up[@]}" = 0 ]; then
    echo "the run-time library of the sanitizer that $(<compiler) has used is not here"
    exit 77
fi
shown='server client said'
clean() { ! grep -qE 'Sanitizer|runtime error' "$@"; }
port=$((20000 + $$ % 10000))

pair() { # PROGRAM ARGUMENT...: both processes of it end well
    local server status
    for _ in 1 2 3; do
        port=$((port + 1))
        timeout -k 5 300 "${set_up[@]}" "$fabtests/bin/$1" -p rnl "${@:2}" -E=$port >server 2>&1 </dev/null &
        server=$!
        for _ in $(seq 100); do # until somebody listens, or it has ended
            kill -0 $server 2>/dev/null || break
            grep -q "$(printf ':%04X 0*:0000 0A' $port)" /proc/net/tcp /proc/net/tcp6 && break
            sleep 0.05
        done
        timeout -k 5 300 "${set_up[@]}" "$fabtests/bin/$1" -p rnl "${@:2}" -E=$port 127.0.0.1 >client 2>&1 </dev/null
        status=$?
        wait $server && [ $status = 0 ] && clean server client && return
        grep -q 'Address already in use' server || return 1
    done
}
one() { # PROGRAM ARGUMENT...
    timeout -k 5 120 "${set_up[@]}" env -u FI_RNL_AUTO_PROGRESS "$fabtests/bin/$1" -p rnl "${@:2}" >said 2>&1 </dev/null && grep -q 'all tests passed' said && clean said
}
case_of() { # NAME COMMAND...
    [[ $1 =~ $only ]] && check "$@"
}

for program in 'fi_getinfo_test -s 127.0.0.1 127.0.0.1' fi_eq_test fi_cq_test fi_cntr_test fi_mr_test; do
    case_of "$program" one $program
done
rdm_programs=(
    'fi_rdm' 'fi_rdm -U' 'fi_rdm_pingpong -v -I 5' 'fi_rdm_pingpong -U -v -I 5' 'fi_rdm_tagged_pingpong -v -I 5' 'fi_rdm_cntr_pingpong -I 5'
    'fi_rdm_tagged_bw -v -U -I 5' 'fi_rma_bw -e rdm -o write -I 5' 'fi_rma_bw -e rdm -o read -I 5' 'fi_rma_bw -e rdm -o writedata -U -I 5'
    'fi_rdm_atomic -o all -I 5' 'fi_rdm_atomic -o all -v -U -I 5' 'fi_rdm_multi_domain -V -e rdm' 'fi_rdm_rma_event' 'fi_rdm_tagged_peek'
    'fi_multi_mr -e rdm -V' 'fi_multi_ep -e rdm -v' 'fi_recv_cancel -e rdm -V' 'fi_unexpected_msg -e rdm -v -I 10'
    'fi_rdm_multi_client -C 10 -I 5' 'fi_av_xfer -e rdm' 'fi_cq_data -e rdm' 'fi_multi_recv -e rdm -I 5' 'fi_unmap_mem -e rdm -I 5'
    'fi_inject_test -A inject -v' 'fi_inject_test -N -A inj_complete -v' 'fi_flood -e rdm -v -T 1'
)
for program in "${rdm_programs[@]}"; do
    [ "$what" = core ] || [[ $program == fi_rdm_atomic* ]] || program=${program/-I 5/-S all} # and as often as it does by itself
    case_of "$program" pair $program
done
refuses() { # PROGRAM ARGUMENT...: FI_ENODATA
    timeout -k 5 60 "${set_up[@]}" "$fabtests/bin/$1" -p rnl "${@:2}" >said 2>&1 </dev/null
    [ $? = 61 ] && clean said
}
for program in fi_rdm_shared_av fi_scalable_ep fi_msg_pingpong 'fi_av_test -e rdm -g 127.0.0.1 -n 1 -s 127.0.0.1'; do
    case_of "refused: $program" refuses $program
done
exit "$failed"
