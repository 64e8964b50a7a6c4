# shellcheck shell=bash
# For the tests that run suites of others on the provider: sourced by them, after `limit`, the seconds that a program may take, is
# set where it is not 280. `test_NAME.sh` runs a core of a suite, `test_NAME.sh all` everything, and `test_NAME.sh all REGEX` the
# cases whose names match.
# shellcheck disable=SC1091,SC2154,SC2034 # test.sh sets and shows them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
needs_files
what=${1:-core}
only=${2:-.}
provider=$build/adapters/ofi/librnl-fi.so
if [ ! -e "$provider" ] || grep -qE '__(asan|tsan)_init' "$provider"; then
    echo 'built without libfabric (libfabric-dev), or with a sanitizer, which programs of others cannot load'
    exit 77
fi
cd "$dir" || exit 1
export TMPDIR=$dir
shown='last err'
ran=0

# on_provider RANKS COMMAND...: its output goes to the file said, its last lines to last, which a red case shows
on_provider() {
    local n=$1 status
    shift
    timeout -k 5 $((${limit:-280} + 20)) "$runnel" mpi -q "$runnel" run --mpi --timeout "${limit:-280}" -n "$n" "$@" >said 2>err </dev/null
    status=$?
    tail -n 15 said >last
    return "$status"
}
case_of() { # NAME COMMAND...
    local name=$1
    shift
    [[ $name =~ $only ]] || return 0
    ran=$((ran + 1))
    "$@"
    ok "$name" $?
}
