#!/bin/sh
# The checkers notice what they are for: each rule is broken once in a small tree of its own.
source=$PWD
tools=$source/build/gen/tools
make -s build/gen/tools/layers build/gen/tools/lint build/gen/tools/bin2c || exit 1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0 failed=0

# A tree that keeps the rules.
fresh() {
    rm -rf "$root/t"
    mkdir -p "$root/t/src/base" "$root/t/src/lm" "$root/t/src/io" "$root/t/build/obj" "$root/t/tests"
    cd "$root/t" || exit 1
    printf '%s\n' 'src/base :' 'src/lm : base ingot' 'src/io : base' 'tests : base' >LAYERS
    printf '/* a.h: nothing. */\n' >src/base/a.h
    printf '/* a.c: nothing. */\n#include "base/a.h"\n#include "a.h"\n#include <stdio.h>\n' >src/lm/a.c
    echo 'gcc -O2 -ffp-contract=off -c a.c' >build/obj/a.o.cmd
}
result() { # name, outcome of the check
    if [ "$2" = ok ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $1"
        cat "$root/out"
    fi
}
accepts() { # name tool argument
    "$tools/$2" "$3" >"$root/out" 2>&1 && result "$1" ok || result "$1" failed
}
reports() { # name tool argument text
    if "$tools/$2" "$3" >"$root/out" 2>&1; then
        result "$1 (nothing was reported)" failed
    else
        grep -q -- "$4" "$root/out" && result "$1" ok || result "$1" failed
    fi
}
repeat() { # n text
    i=0
    while [ $i -lt "$1" ]; do
        printf '%b' "$2"
        i=$((i + 1))
    done
}

fresh
printf '/* a.h: nothing. */\n' >src/lm/a.h
accepts 'downward includes are accepted' layers LAYERS
accepts 'a tree that keeps the rules is accepted' lint build
fresh && printf '/* b */\n#include "lm/a.h"\n' >src/base/b.c
reports 'an include upwards' layers LAYERS 'src/base/b.c:2: src/base may not include "lm/a.h"'
fresh && printf '/* b */\n#  include   "base/x.h"\n' >src/io/b.h && printf '/* b */\n#include "io/b.h"\n' >src/lm/b.c
reports 'an include sideways' layers LAYERS 'src/lm may not include "io/b.h"'
fresh && printf '/* b */\n#include "nowhere.h"\n' >src/lm/b.c
reports 'a bare name that is not beside the file' layers LAYERS 'may not include "nowhere.h"'
fresh && mkdir src/new && printf '/* n */\n' >src/new/n.c
reports 'a folder without a place' layers LAYERS 'src/new/n.c: its folder is not in LAYERS'

in_file() { # name text-of-a-file expected
    fresh && printf '%b' "$2" >src/lm/b.c
    reports "$1" lint build "$3"
}
word=TO
in_file 'a note instead of work' "/* b */\nint x; /* ${word}DO later */\n" 'b.c:2: .*write an issue'
in_file 'a file that does not say what it owns' 'int x;\n' 'opens without saying'
in_file 'a line too long' "/* b */\n/* $(repeat 120 x) */\n" 'columns, at most 100'
in_file 'a tab' '/* b */\n\tint x;\n' 'a tab'
in_file 'a blank at the end' '/* b */ \n' 'blank at the end'
in_file 'a file too long' "/* b */\n$(repeat 800 'int x;\\n')" '801 lines, at most 800'
in_file 'a function too long' "/* b */\nvoid f(void)\n{\n$(repeat 81 '    g();\\n')}\n" 'a function of 81 lines'
in_file 'conditional compilation in a function' '/* b */\nvoid f(void)\n{\n#ifdef A\n#endif\n}\n' 'inside a function'
in_file 'the environment in a library' '/* b */\nchar *f(void) { return getenv("A"); }\n' 'calls getenv'
in_file 'printing in a library' '/* b */\nvoid f(void) { printf ("A"); }\n' 'calls printf'
in_file 'the heap past base' '/* b */\nvoid f(void *p) { free(p); }\n' 'calls free: memory comes from'
in_file 'the disk past base' '/* b */\nint f(void) { return open("a", 0); }\n' 'calls open'
in_file 'an unbounded call' '/* b */\nint f(char *p) { strcpy(p, "a"); }\n' 'calls strcpy'
fresh && printf '/* b */\nvoid f(void) { assert(1); }\n' >src/io/b.c
reports 'an assert where outside input comes in' lint build 'calls assert'
fresh && printf '/* b\n * free(p) */\nvoid f(void) { g("free(p)", my_free(p), x.free(p), \x27"\x27); }\n' >src/lm/b.c
accepts 'names in comments, strings and longer names are no calls' lint build
fresh && printf '/* b */\nvoid f(void *p) { free(p); } /* lint: allow free, it came from elsewhere */\n' >src/lm/b.c
accepts 'a line may break a rule and say why' lint build
fresh && for i in 1 2 3 4 5; do printf '/* f */\n' >src/lm/f$i.c; done
reports 'a folder without a README' lint build 'src/lm/README.md:0: missing: the folder has 6 files'
fresh && echo 'gcc -O2 -c a.c' >build/obj/a.o.cmd
reports 'an object without the numeric contract' lint build 'without -ffp-contract=off'
fresh && echo 'gcc -Ofast -ffp-contract=off -c a.c' >build/obj/a.o.cmd
reports 'an object with fast mathematics' lint build 'compiled with -Ofast'
fresh && echo 'int ig_a, other;' | gcc -shared -x c - -o build/libingot.so
reports 'an exported name of somebody else' lint build 'exports other'

fresh && printf 'a\n\0\377"' >in && "$tools/bin2c" in out.inc &&
    printf 'const unsigned char t[] = {\n#include "out.inc"\n};\n#include <stdio.h>\nint main(void) { fwrite(t, 1, sizeof t - 1, stdout); }\n' >c.c &&
    gcc -funsigned-char -Wno-overflow c.c -o c && ./c >back && cmp in back >"$root/out" 2>&1
[ $? -eq 0 ] && result 'embedded bytes come back' ok || result 'embedded bytes come back' failed

# opgen of a table with the rows of $1, into ops.h
opgen() {
    mkdir -p gen/array && printf '%b' "$1" >gen/array/ops.def &&
        gcc -std=gnu11 -Igen "$source/tools/opgen.c" -o opgen && ./opgen ops.h ops.md ops.c
} >"$root/out" 2>&1
row='OP(add, binary, GEN, (ARR(a) OPT(b) AXES(x) DIMS(d)), EW2(a | b), REAL(0, 1), "Sum.", NG'
fresh && opgen "#define NG NO_GRADIENT, NO_GRADIENT, NO_GRADIENT\n$row)\n" &&
    grep -q 'ig_array ig_add(ig_array a, ig_array b, const int \*x, int n_x, const int64_t \*d,' ops.h &&
    grep -q 'call_axes(&c, x, n_x);' ops.c && grep -qF '| `add(a, b?, x, d)` | Sum. | `a \| b` |' ops.md
[ $? -eq 0 ] && result 'a row becomes a prototype, a builder and a line' ok || result 'a row' failed
fresh && opgen "#define NG NO_GRADIENT, NO_GRADIENT\n$row)\n"
[ $? -ne 0 ] && result 'a row without a word on a gradient does not compile' ok || result 'a silent row' failed
fresh && opgen '#define NG A, B, C\nOP(f, r, GEN, (WHAT(a)), NONE, NONE, "F.", NG)\n'
[ $? -ne 0 ] && result 'an unknown kind of argument is refused' ok || result 'an unknown kind' failed
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
