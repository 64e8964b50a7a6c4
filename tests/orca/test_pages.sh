#!/usr/bin/env bash
# The programs of the manual pages in Orca: a block whose first line is "# NAME.spf" or "# NAME.imp" is that file. One that says
# '# NAME.imp prints "TEXT" with 1, 3 cpus' is compiled, and prints that line on so many cpus, and on as many ranks.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
for page in runnel-orca.7 orcac.1; do
    mkdir "$page"
    # scdoc takes one of two backslashes.
    sed 's/\\\\/\\/g' "$tree/man/$page.scd" | awk -v folder="$page" '
        /^```/ { inside = !inside; file = ""; first = 1; next }
        inside && first { first = 0; if ($1 == "#" && $2 ~ /^[A-Za-z]+\.(spf|imp)$/) file = folder "/" $2 }
        inside && file != "" { print >file }'
    while IFS= read -r head; do
        [[ $head =~ ^([^:]*)/([A-Za-z]+)\.imp:.*prints\ \"(.*)\"\ with\ ([0-9,\ ]+)\ cpus ]] || continue
        name=${BASH_REMATCH[2]} text=${BASH_REMATCH[3]} counts=${BASH_REMATCH[4]//,/}
        (cd "$page" && "$build/lang/orcac" "$name.imp" -o "$name") >said 2>&1
        ok "$page: $name compiles" $?
        for n in $counts; do
            timeout 60 "$page/$name" -cpus "$n" >said 2>&1 && grep -qx -- "$text" said
            ok "$page: $name on $n cpus prints $text" $?
            timeout 60 "$runnel" run -n "$n" "$page/$name" >said 2>&1 && grep -qx -- "$text" said
            ok "$page: $name on $n ranks prints $text" $?
        done
    done < <(grep -H '^# [A-Za-z]*\.imp prints ' "$page"/*.imp)
done
[ "$(find . -name '*.imp' | wc -l)" -ge 4 ]
ok "the pages have programs" $?
exit "$failed"
