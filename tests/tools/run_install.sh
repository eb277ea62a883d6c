#!/bin/sh
# What is installed can be used by a stranger's program: C99 and C++, shared and static, by
# pkg-config; every public header stands alone; uninstall leaves nothing.
B=${B:-build}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0 failed=0
check() { # name command...
    name=$1
    shift
    if "$@" >"$root/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name"
        cat "$root/log"
    fi
}
says() { # expected command...
    expected=$1
    shift
    got=$("$@") && [ "$got" = "$expected" ] || { echo "said: $got"; return 1; }
}

version=$(sed -n 's/^#define IG_VERSION "\(.*\)"/\1/p' include/ingot/ingot.h)
check install make -s install PREFIX=/opt/ingot DESTDIR="$root/dest"
export PKG_CONFIG_PATH="$root/dest/opt/ingot/lib/pkgconfig"
export PKG_CONFIG_SYSROOT_DIR="$root/dest" LD_LIBRARY_PATH="$root/dest/opt/ingot/lib"
warn='-Wall -Wextra -Werror -pedantic'
flags=$(pkg-config --cflags ingot)
shared=$(pkg-config --libs ingot)
static="$LD_LIBRARY_PATH/libingot.a $(pkg-config --static --libs-only-l ingot | sed 's/-lingot //')"

check c99 gcc -std=c99 $warn $flags tests/tools/install_check.c $shared -o "$root/c99"
check 'c99 runs' says "$version 6.5" "$root/c99"
check c++ g++ -x c++ -std=c++11 $warn $flags tests/tools/install_check.c -x none $shared -o "$root/cpp"
check 'c++ runs' says "$version 6.5" "$root/cpp"
check static gcc -std=c99 $warn $flags tests/tools/install_check.c $static -o "$root/static"
check 'static runs' env LD_LIBRARY_PATH= "$root/static"
for h in "$root"/dest/opt/ingot/include/ingot/*.h; do
    check "$(basename "$h") as C99" gcc -std=c99 $warn $flags -fsyntax-only -x c "$h"
    check "$(basename "$h") as C++" g++ -std=c++11 $warn $flags -fsyntax-only -x c++ "$h"
done
check 'only public names' sh -c "! nm -D --defined-only $LD_LIBRARY_PATH/*.so | awk 'NF == 3 && \$3 !~ /^ig_/' | grep ."
check 'pkg-config of ingot-lm' pkg-config --exists ingot-lm
check 'the command runs' says "ingot $version" sh -c "'$root/dest/opt/ingot/bin/ingot' version | head -n 1"
check 'man page' sh -c "man -l --warnings '$root/dest/opt/ingot/share/man/man1/ingot.1' 2>&1 >/dev/null | grep . && exit 1 || true"
check uninstall make -s uninstall PREFIX=/opt/ingot DESTDIR="$root/dest"
check 'nothing stays' sh -c "! find '$root/dest' -type f -o -type l | grep ."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
