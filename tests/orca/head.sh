# shellcheck shell=bash
# What the tests of Orca begin with, sourced by them: the head of all scripts, and the compiler with the sanitizer of the build. The
# current folder is their own; $sanitizer is empty without one, and $limit says how many seconds a job of ranks may take.
# shellcheck source=tests/support/test.sh disable=SC2034 # for those who source this
declare -F ok >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh" # after multi/hosts.sh it is there
build=$(cd "$build" && pwd) runnel=$(realpath "$runnel")
cd "$dir" || exit 1
sanitizer='' limit=60
case $(nm "$build/lang/liborca.a" 2>/dev/null | grep -oE -m 1 '__[at]san_init') in
__asan_init) sanitizer='-W -fsanitize=address,undefined' limit=240 ;;
__tsan_init) sanitizer='-W -fsanitize=thread' limit=240 ;;
esac
orcac() { # ARGUMENT...: the C compiler gets the sanitizer, too
    # shellcheck disable=SC2086 # words
    "$build/lang/orcac" $sanitizer "$@" >said 2>&1
}
compiles() { # SOURCE OPTION...: a case that makes the program ./NAME of NAME.imp
    local name
    name=$(basename "$1" .imp)
    orcac "$@" -o "$name"
    ok "$name compiles" $?
}
