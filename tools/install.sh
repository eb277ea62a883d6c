#!/bin/sh
# Installs what was built in $B below $DESTDIR$PREFIX, or removes it again. Called by make, which sets
# B, VERSION, PREFIX, LIBDIR, DESTDIR.
set -e
so=${VERSION%%.*}
bin=$DESTDIR$PREFIX/bin
lib=$DESTDIR$LIBDIR
include=$DESTDIR$PREFIX/include/ingot
man=$DESTDIR$PREFIX/share/man/man1

# name description requires libs-private
pc_file() {
    cat <<EOF
prefix=$PREFIX
libdir=$LIBDIR
includedir=\${prefix}/include

Name: $1
Description: $2
Version: $VERSION
Requires:$3
Libs: -L\${libdir} -l$1
Libs.private: $4
Cflags: -I\${includedir}
EOF
}

install_library() {
    [ -e "$B/lib$1.a" ] || return 0
    install -m 644 "$B/lib$1.a" "$lib"
    install -m 755 "$B/lib$1.so" "$lib/lib$1.so.$VERSION"
    ln -sf "lib$1.so.$VERSION" "$lib/lib$1.so.$so"
    ln -sf "lib$1.so.$so" "$lib/lib$1.so"
    pc_file "$@" >"$lib/pkgconfig/$1.pc"
}

case $1 in
install)
    install -d "$bin" "$lib/pkgconfig" "$include" "$man"
    install -m 644 include/ingot/*.h "$include"
    install_library ingot 'Array framework: lazy graphs, plans, quantised values' '' \
        '-lcrypto -ljansson -lm -lpthread'
    install_library ingot-lm 'Language models on libingot' ' ingot' \
        '-lpcre2-8 -lutf8proc -lcrypto -ljansson -lm -lpthread'
    install -m 755 "$B/ingot" "$bin"
    install -m 644 "$B/ingot.1" "$man"
    ;;
uninstall)
    rm -f "$bin/ingot" "$man/ingot.1" "$lib"/libingot.a "$lib"/libingot.so* \
        "$lib"/libingot-lm.a "$lib"/libingot-lm.so* \
        "$lib/pkgconfig/ingot.pc" "$lib/pkgconfig/ingot-lm.pc"
    rm -rf "$include"
    ;;
esac
