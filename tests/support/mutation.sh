#!/bin/sh
# mutation.sh PROGRAM CASE FILE LINE SCRIPT: does the named case see a mutation? In a copy of the source, tests/PROGRAM must pass;
# then `sed SCRIPT` changes FILE, which has to hold LINE (a basic regular expression), and CASE must fail. Ends with the counting line.
set -eu
B=${B:-build}
program=$1 case=$2 file=$3 line=$4 script=$5
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT INT TERM

cp -a Makefile include src tests tools docs "$copy/"
mkdir "$copy/build"
for part in flags objects gen obj tests/support libsupport.a libapp.a libingot-lm.a libingot.a; do
    [ -e "$B/$part" ] || continue
    mkdir -p "$(dirname "$copy/build/$part")"
    cp -a "$B/$part" "$copy/build/$part"
done

# build_and_run LOG: exit status of the test
build_and_run() {
    make -s -C "$copy" "build/tests/$program" >"$copy/make.log" 2>&1 || {
        tail -n 20 "$copy/make.log"
        echo "the copy does not build"
        exit 1
    }
    (cd "$copy" && "./build/tests/$program" >"$1" 2>&1)
}

build_and_run "$copy/before.log" || {
    tail -n 20 "$copy/before.log"
    echo "the test fails without the mutation"
    exit 1
}
grep -q "$line" "$copy/$file" || {
    echo "$file has changed: teach this test where to mutate it"
    exit 1
}
sed -i "$script" "$copy/$file"
if build_and_run "$copy/after.log"; then
    echo "the mutation went unnoticed"
    exit 1
fi
grep "FAILED  \] $case" "$copy/after.log" | head -n 1 || {
    tail -n 20 "$copy/after.log"
    echo "something failed, but not $case"
    exit 1
}
sed -n -e '/differs/{p;q}' -e '/ got$/{p;q}' "$copy/after.log" # where, for whoever reads along; the check is above
echo "1 passed, 0 failed"
