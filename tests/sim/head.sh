# shellcheck shell=bash
# What the scripts of this folder begin with, sourced by them: the head of all scripts, and what runs of `runnel sim` need.
# shellcheck source=tests/support/test.sh disable=SC2034 # for those who source this
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
set -o pipefail
vprocs=$build/tests

needs() { # FILE...: skips without them, and goes to the empty folder
    needs_files "$@"
    cd "$dir" || exit 1
}
hash_of() { sed -n 's/^runnel: .* hash \([0-9a-f]\{16\}\)$/\1/p' "$1"; }
