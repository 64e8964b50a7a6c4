#!/usr/bin/env bash
# MPICH's own test suite on the provider, unmodified, with the MPICH of scripts/suites: its folders attr, comm, pt2pt, datatype, coll,
# rma and errors, as many processes as its lists say. A case is red if a program says anything but that it found no errors, or
# is not through in the time that its list gives it. `test_mpich.sh most` leaves out what goes through pools of datatypes or through
# all algorithms, which is two thirds of `all`. What else is left out is listed below with its reason.
# shellcheck disable=SC1091,SC2154,SC2034,SC2317 # provider.sh sets and reads them; what case_of calls
. "$(dirname "$0")/provider.sh"
mpich=$("$tree/scripts/suites" mpich) || { echo "${mpich##*$'\n'}"; exit 77; }
most=16 # processes: of two programs there are lines for 33 and 72
memory=$(awk '/^MemAvailable/ { print $2 / 1e6 }' /proc/meminfo)
# In `core`: some of each folder, which take every way of the provider.
core=' attr/attrend comm/dup comm/ctxalloc comm/icsplit pt2pt/sendrecv1 pt2pt/isendirecv pt2pt/anyall pt2pt/probe_unexp pt2pt/large_tag
 pt2pt/rcancel pt2pt/mprobe pt2pt/dtype_send pt2pt/sendflood datatype/sendrecvt4 datatype/struct_ezhov coll/allred4 coll/alltoallw2
 coll/nonblocking3 coll/neighb_alltoall rma/accfence1 rma/putpscw1 rma/manyrma3 rma/fetch_and_op_int rma/compare_and_swap rma/lockall_dt rma/transpose3 rma/win_flavors
 errors/pt2pt/proberank errors/comm/ccreate1 errors/rma/win_sync_op '
core=${core//$'\n'/}

through() { # PROGRAM RANKS SECONDS NAME=VALUE... -- ARGUMENT...: and no line but those
    local n=$2 program=$1 settings=()
    limit=$3
    shift 3
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    [ "${#settings[@]}" = 0 ] || settings=(env "${settings[@]}")
    on_provider "$n" "${going[@]}" "${settings[@]}" "$mpich/test/$program" "${@:2}" || [ "$ends" = aborted ] || return 1
    grep -qiE '^ *No errors *$' said && ! grep -viE '^ *(No errors|Test passed) *$' said >>err && { [ ! -s err ] || [ "$ends" = aborted ]; }
}
# `line FOLDER NAME RANKS OPTION...`, as a list of the suite has it
line() {
    local folder=$1 name=$2 n=$3 option seconds=180 ends=well going=() settings=() arguments=()
    shift 3
    case $name in
    cmsplit_type) return ;;                # needs MPI-IO, which this MPICH is built without: red by FI_PROVIDER=sockets, too
    large_acc_flush_local) seconds=3600 ;; # 20 GB of each rank: a hundredth of it takes longer by FI_PROVIDER=sockets and by UCX
    esac
    for option in "$@"; do
        case $option in
        arg=*) arguments+=("${option#*=}") ;;
        env=*) settings+=("${option#*=}") ;;
        timeLimit=*) seconds=${option#*=} ;;
        xfail=*) return ;; # what MPICH knows to fail
        mpiexecarg=-disable-auto-cleanup) going=(--keep-going) ;;
        resultTest=TestStatus) ends=aborted ;; # some of its ranks call MPI_Abort, so the job has a status, and says so
        mem=*) if awk "BEGIN { exit !(${option#*=} > $memory * 0.7) }"; then
            echo "# $folder/$name, $n ranks: left out, it needs ${option#*=} GB of memory"
            return
        fi ;;
        esac
    done
    [ "$n" -le $most ] || return 0
    case_of "MPICH: $folder/$name, $n ranks${arguments[*]:+, ${arguments[*]}}${settings[*]:+, ${settings[*]}}" \
        through "$folder/$name" "$n" "$seconds" "${settings[@]}" -- "${arguments[@]}"
}

# ---- processes that MPI_Init did not bring together ----
within() { on_provider 4 "$dir/meets" within && grep -qx '4 have met' said; }
two_jobs() {
    local first status
    "$runnel" mpi -q "$runnel" run --mpi --timeout 100 -n 2 "$dir/meets" accept "$dir/port" >other 2>&1 </dev/null &
    first=$!
    limit=100
    on_provider 2 "$dir/meets" connect "$dir/port"
    status=$?
    wait "$first" && [ "$status" = 0 ] && [ "$(cat said other | grep -cx '4 have met')" = 1 ]
}
for program in meets threads; do
    "$mpich/bin/mpicc" -O1 -o $program "$tree/tests/ofi/$program.c" >said 2>err || cat err
done
case_of 'MPICH: ranks accept and connect' within
case_of 'MPICH: two jobs meet' two_jobs
limit=200
threads() { on_provider "$1" "$dir/threads" && grep -qx "threads of $1" said; }
for n in 2 3; do
    case_of "MPICH: four threads of each of $n ranks send, put and reduce at once" threads $n
done

# ---- the suite ----
lists=(testlist)
[ "$what" = most ] || lists+=(testlist.dtp)  # with a pool of datatypes
[ "$what" != all ] || lists+=(testlist.cvar) # each collective operation with each of its algorithms
for folder in attr comm pt2pt datatype coll rma errors/{attr,basic,coll,comm,datatype,group,pt2pt,rma,topo}; do
    cd "$mpich/test/$folder" || exit 1
    present=()
    for list in "${lists[@]}"; do
        [ ! -e "$list" ] || present+=("$list")
    done
    [ "${#present[@]}" -gt 0 ] || continue
    mapfile -t lines < <(grep -hE '^[A-Za-z_]' "${present[@]}")
    if [ "$what" = core ]; then # of each program the first line
        mapfile -t lines < <(printf '%s\n' "${lines[@]}" | awk -v folder="$folder/" -v core="$core" 'index(core, " " folder $1 " ") && !seen[$1]++')
    fi
    mapfile -t names < <(printf '%s\n' "${lines[@]}" | awk 'NF { print $1 }' | sort -u)
    [ "${#names[@]}" -gt 0 ] || continue
    for name in "${names[@]}"; do
        core=${core/" $folder/$name "/ }
    done
    nice make -s -k "-j${SUITES_JOBS:-2}" "${names[@]}" >"$dir/made" 2>&1
    cd "$dir" || exit 1
    for text in "${lines[@]}"; do
        read -ra words <<<"$text"
        if [ ! -x "$mpich/test/$folder/${words[0]}" ]; then
            echo "# $folder/${words[0]}: does not compile"
            continue
        fi
        line "$folder" "${words[@]}"
    done
done
if [ "$only" = . ] && [ "$what" != most ]; then
    [[ $core =~ ^\ *$ ]]
    ok "what the core names is in the suite's lists:${core%% }" $?
fi
exit "$failed"
