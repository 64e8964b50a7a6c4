#!/usr/bin/env bash
# The Makefile and the scripts behind it: what they say to whom builds and installs for the first time. In a tree of scripts alone,
# with stand-ins for the programs that would build.
# shellcheck disable=SC2317 # functions called through ok
set -u
source_tree=${RUNNEL_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DESTDIR PREFIX MAKEFLAGS MAKELEVEL MFLAGS
status=0

ok() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then
        echo "ok - $name"
    else
        printf 'not ok - %s\n' "$name"
        sed 's/^/    /' "$dir/out" | head -n 20
        status=1
    fi
}
says() { grep -qE -- "$1" "$dir/out"; }

mkdir "$dir/tree" "$dir/bin" "$dir/closed" "$dir/none"
cp -r "$source_tree/Makefile" "$source_tree/scripts" "$dir/tree/"
chmod 755 "$dir" "$dir/tree" "$dir/closed"
cd "$dir/tree" || exit 1

make help >"$dir/out" 2>&1
for target in demo check check-all install figures clean; do
    ok "make help tells of make $target" says "^make $target  +[a-z]"
done
make -n test >"$dir/out" 2>&1
ok "make test is make check" says '^scripts/check$'

# ---- an ordinary user

user=()
if [ "$(id -u)" = 0 ]; then user=(setpriv --reuid 65534 --clear-groups); fi
if [ "$(id -u)" != 0 ] || setpriv --reuid 65534 --clear-groups make --version >/dev/null 2>&1; then
    chmod 555 "$dir/closed"
    for prefix in "$dir/closed" "$dir/closed/deeper/still"; do
        "${user[@]}" make install PREFIX="$prefix" >"$dir/out" 2>&1
        ok "make install where one may not write says what to do: ${prefix#"$dir"/}" \
            says "^no permission to write $dir/closed: make install PREFIX=\\\$HOME/.local, or as root\$"
        ok "... and nothing else" test "$(grep -vc '^make: ' "$dir/out")" = 1
    done
    # Who built as root, or with sudo, has left what others cannot write.
    mkdir -m 777 build && : >build/setup.log
    for left in build/setup.log build; do
        chmod a-w $left
        "${user[@]}" scripts/build build >"$dir/out" 2>&1
        code=$?
        ok "a build of somebody else is no log but a sentence: $left" \
            test "$code $(wc -l <"$dir/out") $(grep -c "write $left, .* belongs to $(id -un): remove build as" "$dir/out")" = "1 1 1"
        chmod u+w $left
        rm -f build/setup.log
    done
    rmdir build
    chmod 555 .
    "${user[@]}" scripts/build build >"$dir/out" 2>&1
    ok "so are sources of somebody else" test "$(wc -l <"$dir/out") $(grep -c 'write \., .*in a copy of the sources' "$dir/out")" = "1 1"
    chmod 755 .
else
    echo "ok - make install without permission # SKIP cannot become another user"
fi
printf '#!/bin/sh\necho 1000\n' >"$dir/none/id"
printf '#!/bin/sh\nexit 1\n' >"$dir/none/dpkg-query"
chmod +x "$dir/none/id" "$dir/none/dpkg-query"
PATH=$dir/none:$PATH scripts/setup >"$dir/out" 2>&1
ok "dpkg-dev is among what is needed: it tells meson where libraries go" says '^  sudo apt-get install .* dpkg-dev '

# ---- with all there is

printf '#!/bin/sh\n' | tee scripts/setup scripts/build >"$dir/bin/ldconfig"
printf '#!/bin/sh\nmkdir -p "%s/prefix/lib/triple/pkgconfig" && : >"%s/prefix/lib/triple/pkgconfig/runnel.pc"\n' "$dir" "$dir" >"$dir/bin/meson"
chmod +x "$dir/bin/ldconfig" "$dir/bin/meson"
make >"$dir/out" 2>&1
ok "make says what it has built" grep -qx 'built: build/tools/runnel' "$dir/out"
PATH=$dir/bin:$PATH make install PREFIX="$dir/prefix" >"$dir/out" 2>&1
ok "make install says what another prefix needs" \
    says "^  export PATH=$dir/prefix/bin:\\\$PATH PKG_CONFIG_PATH=$dir/prefix/lib/triple/pkgconfig LD_LIBRARY_PATH=$dir/prefix/lib/triple\$"

if [ -e /etc/debian_version ] && command -v meson >/dev/null; then
    parts=(-Dtests=false -Dman=false -Dexamples=false)
    meson setup "$dir/lib64" "$source_tree" "${parts[@]}" --libdir lib64 >"$dir/out" 2>&1
    ok "a library directory that Debian does not search is warned of" says 'WARNING: .*lib64.* dpkg-dev'
    meson setup "$dir/usual" "$source_tree" "${parts[@]}" >"$dir/out" 2>&1
    ok "that which meson finds with dpkg-dev is not" test "$(grep -c 'WARNING: .*lib64' "$dir/out")" = 0
else
    echo "ok - a library directory that Debian does not search # SKIP no Debian, or no meson"
fi
exit $status
