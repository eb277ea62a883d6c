#!/bin/sh
# Lines of src/ that the tests of a COV=1 build ($1) reached, per file and in sum.
for d in $(find "$1/obj" -name '*.gcda' -exec dirname {} \; | sort -u); do
    gcov -n -r -o "$d" "$d"/*.gcda 2>/dev/null
done | awk '
    /^File / { file = substr($2, 2, length($2) - 2) }
    /^Lines executed:/ && file ~ /^src\// {
        split($2, part, /[:%]/)
        lines[file] = $4
        reached[file] = part[2] > best[file] ? part[2] : best[file]
        best[file] = reached[file]
        file = ""
    }
    END {
        for (f in lines) {
            printf "%6.1f %%  %5d lines  %s\n", reached[f], lines[f], f | "sort -k4"
            total += lines[f]
            hit += lines[f] * reached[f] / 100
        }
        close("sort -k4")
        if (total) printf "%6.1f %%  %5d lines  in all\n", 100 * hit / total, total
    }'
