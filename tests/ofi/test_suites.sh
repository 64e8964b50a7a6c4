#!/usr/bin/env bash
# Suites of others on Open MPI and the provider, unmodified, as Debian has them: BLACS' and ScaLAPACK's own tests, HPC Challenge and
# mpi4py's programs. A case is red if the suite finds an error, or ends without saying that it has found none. Left out is
# mpi4py.futures: its probes find nothing on an intercommunicator by Open MPI 4.1.4's mtl ofi, with libfabric's own providers, either
# (FI_PROVIDER=tcp, FI_PROVIDER=sockets). So are ScaLAPACK's x?sep, of which one check in 108 was seen to fail, and x?hseqr, which has
# no last line that says that it is through.
# shellcheck disable=SC1091,SC2154,SC2034,SC2317 # provider.sh sets and reads them; what case_of calls
limit=880
. "$(dirname "$0")/provider.sh"
if ! command -v mpicc.openmpi >/dev/null || ! "$runnel" run -n 2 --mpi true 2>/dev/null; then
    echo 'Open MPI is not installed (openmpi-bin, libopenmpi-dev), or there is no PMIx (libpmix-dev)'
    exit 77
fi
scalapack=$(dpkg -L scalapack-mpi-test 2>/dev/null | grep -m1 '/openmpi-tests$')

# ---- BLACS, ScaLAPACK ----
blacs() { # PROGRAM: its last test is that an abort ends all, so nothing comes after the announcement of that
    local status
    cp "$scalapack"/BLACS/*.dat .
    on_provider 4 "$scalapack/BLACS/$1"
    status=$?
    [ "$status" = 255 ] && grep -q 'final auxiliary test is for BLACS_ABORT' said && [ "$(grep -c ' 0 FAILED\.$' said)" -ge 20 ] &&
        ! grep -E '[1-9][0-9]* FAILED|^ *FAILED' said >err
}
no_failure() { # no word for one at the beginning or end of a row, and no number of them but 0
    ! grep -E '[1-9][0-9]* tests completed and failed|FAILED( +[*]|$)|^ *Failed|^ *[|] +[A-Z0-9]+ +[0-9]+ +[0-9]+ +[1-9]' said >err
}
pblas() { # PROGRAM
    cp "$scalapack"/PBLAS/*.dat .
    on_provider 4 "$scalapack/PBLAS/$1" && grep -q 'Computational check: .* PASSED' said && grep -q 'End of Tests' said && no_failure
}
scalapack() { # PROGRAM
    cp "$scalapack"/*.dat .
    on_provider 4 "$scalapack/$1" && grep -qi 'passed' said && grep -qi 'end of tests' said && no_failure
}
if [ -n "$scalapack" ]; then
    case_of 'BLACS xCbtest' blacs xCbtest
    if [ "$what" = all ]; then
        case_of 'BLACS xFbtest' blacs xFbtest
        for program in "$scalapack"/PBLAS/?pb?tst; do
            case_of "PBLAS ${program##*/}" pblas "${program##*/}"
        done
    fi
    for program in "$scalapack"/x*; do
        program=${program##*/}
        [[ $program != x?btest && $program != x?sep && $program != x?hseqr ]] || continue # BLACS', and those that are left out
        [ "$what" = all ] || [[ " xdlu xcqr " == *" $program "* ]] && case_of "ScaLAPACK $program" scalapack "$program"
    done
else
    echo '# BLACS, ScaLAPACK: not installed (scalapack-mpi-test)'
fi

# ---- HPC Challenge: transposing, random access, FFT, latency and bandwidth of rings, and solving a system of equations ----
challenge() {
    rm -f hpccoutf.txt
    sed 's/^1000  *Ns/'"$1"' Ns/; s/^80  *NBs/16 NBs/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
    on_provider 4 hpcc && mv hpccoutf.txt said && tail -n 15 said >last && grep -qx 'Success=1' said && grep -q 'RandomlyOrderedRingLatency' said &&
        ! grep -E '[1-9][0-9]* tests completed and failed|Found [1-9][0-9]* errors|FAILED' said >err
}
if command -v hpcc >/dev/null && [ -e /usr/share/doc/hpcc/examples/_hpccinf.txt ]; then
    case_of 'HPC Challenge, 120 equations' challenge 120
    [ "$what" != all ] || case_of 'HPC Challenge, 1000 equations' challenge 1000
else
    echo '# HPC Challenge: not installed (hpcc)'
fi

# ---- mpi4py ----
python=/usr/bin/python3 # Debian's, whose package it is
ring_of_objects() {
    on_provider 3 "$python" -m mpi4py.bench ringtest -l 20 -n 100000 && grep -q 'time for 20 loops' said
}
objects() {
    on_provider 3 "$python" -m mpi4py.bench helloworld && [ "$(grep -c 'I am process [0-2] of 3' said)" = 3 ]
}
if "$python" -c 'import mpi4py' 2>/dev/null; then
    case_of 'mpi4py: three processes say hello' objects
    case_of 'mpi4py: a ring' ring_of_objects
else
    echo '# mpi4py: not installed (python3-mpi4py)'
fi
if [ "$ran" = 0 ]; then
    echo 'no suite is installed (scalapack-mpi-test, hpcc, python3-mpi4py)'
    exit 77
fi
exit "$failed"
