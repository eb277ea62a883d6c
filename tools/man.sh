#!/bin/sh
# man.sh PROGRAM VERSION: the manual page on standard output: docs/ingot.1.in, with the commands and
# options that the program's own help states.
ingot=$1
commands() {
    "$ingot" help | sed -n 's/^  ingot \([a-z]*\) .*/\1/p' | while read -r name; do
        "$ingot" help "$name" | awk '
            function escaped(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }
            NR == 1 { printf ".SS %s\n", escaped($0); next }
            /^ *(-[a-zA-Z], )?--/ {
                match($0, /--[a-z-]+( [^ ]+)?( |$)/) # a value has no space, text is far off
                if (substr($0, RSTART) ~ /^--[a-z-]+  /) match($0, /--[a-z-]+ /)
                label = substr($0, RSTART, RLENGTH)
                doc = substr($0, RSTART + RLENGTH)
                letter = match($0, /-[a-zA-Z], /) ? substr($0, RSTART, 4) : ""
                sub(/^ */, "", doc)
                sub(/ *$/, "", label)
                printf ".TP\n.B %s\n", escaped(letter label)
                if (doc != "") print escaped(doc) # else the next line has it
                next
            }
            /^ *$/ { print ".PP"; next }
            { sub(/^ */, ""); gsub(/   +/, "\n.br\n"); print escaped($0) }'
    done
}
commands >"${TMPDIR:-/tmp}/ingot-man.$$"
sed -e "s/@VERSION@/$2/" -e "/@COMMANDS@/{
r ${TMPDIR:-/tmp}/ingot-man.$$
d
}" docs/ingot.1.in
rm -f "${TMPDIR:-/tmp}/ingot-man.$$"
