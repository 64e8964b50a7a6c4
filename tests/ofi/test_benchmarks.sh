#!/usr/bin/env bash
# The benchmarks of OSU and Intel, unmodified, on the provider, with Open MPI and with the MPICH of scripts/suites where that has been
# built: each looks at the bytes that it receives, and no figure of theirs counts. `test_benchmarks.sh` runs a core of them,
# `test_benchmarks.sh all` everything, `test_benchmarks.sh all REGEX` those whose names match. What fails whatever carries the
# messages is listed below with its reason, and left out.
# shellcheck disable=SC1091,SC2154,SC2317 # provider.sh sets them; what case_of calls
. "$(dirname "$0")/provider.sh"
osu=$("$tree/scripts/suites" osu) || { echo "# OSU: ${osu##*$'\n'}"; osu=; }
imb=$("$tree/scripts/suites" imb) || { echo "# Intel: ${imb##*$'\n'}"; imb=; }
if [ -z "$osu$imb" ]; then
    echo 'the sources of neither suite can be had here (scripts/suites osu SOURCE, scripts/suites imb SOURCE)'
    exit 77
fi

# Known to fail, or not to be for this:
#   osu_latency_mt, osu_latency_mp   threads of a rank and forked ranks; on Open MPI's ob1 over vader they end "improperly", too
#   osu_fop_latency, osu_cas_latency on MPICH: they free a pointer that they did not allocate, after the first line
# Those that have no -c do not look at the bytes: barriers, one-sided ones (Intel's IMB-RMA looks), osu_init and osu_hello.
left_out=' osu_latency_mt osu_latency_mp '
left_out_mpich=' osu_fop_latency osu_cas_latency '

osu() { # RANKS PROGRAM: it is through, and no size has failed; short, since no figure counts
    local options=(-i 10 -x 2)
    case ${2##*/} in
    osu_init | osu_hello) options=() ;;
    *barrier*) ;;
    osu_cas_* | osu_fop_*) ;;
    osu_*put_* | osu_*get_* | osu_*acc_*) options+=(-m :65536) ;;
    *) options+=(-m :65536 -c) ;;
    esac
    on_provider "$1" "$2" "${options[@]}" && grep -q '^ *[0-9]\|^This is a test\|nprocs' said && ! grep -iE 'fail|error|invalid' said >>err
}
intel() { # RANKS PROGRAM BENCHMARK...: all defects are 0
    on_provider "$1" "$2" -iter 20 -msglog 16 -time 5 -npmin "$1" "${@:3}" && grep -q '# All processes entering MPI_Finalize' said &&
        ! awk '/defects *$/ { with = 1; next } /^ *$|^#/ && !/defects/ { with = 0 } with && $NF + 0 != 0' said | grep . >>err
}

for mpi in openmpi mpich; do
    core=' osu_latency osu_bw osu_bibw osu_mbw_mr osu_allreduce osu_alltoall osu_bcast osu_iallgather osu_put_latency osu_get_bw '
    for program in "${osu:-/none}/$mpi"/osu_*; do
        short=${program##*/}
        [ -x "$program" ] || continue
        [[ $left_out != *" $short "* ]] || continue
        [ $mpi = openmpi ] || [[ $left_out_mpich != *" $short "* ]] || continue
        [ "$what" = all ] || [[ $core == *" $short "* ]] || continue
        counts=2
        [ "$what" != all ] || ! grep -q 'collective\|MPI_\(I\|Neighbor\|All\|Reduce\|Gather\|Scatter\|Bcast\)' "$program" || counts='2 3 4'
        for n in $counts; do
            case_of "OSU $mpi: $short, $n ranks" osu "$n" "$program"
        done
    done
    for program in "${imb:-/none}/$mpi"/IMB-*; do
        [ -x "$program" ] || continue
        short=${program##*/}
        if [ "$what" = all ]; then
            for n in 2 4; do
                case_of "Intel $mpi: $short, $n ranks" intel "$n" "$program"
            done
        elif [ "$short" = IMB-MPI1 ]; then
            case_of "Intel $mpi: $short, 2 ranks" intel 2 "$program" PingPong SendRecv Exchange Allreduce Alltoall
        else
            case_of "Intel $mpi: $short, 2 ranks" intel 2 "$program"
        fi
    done
done
exit "$failed"
