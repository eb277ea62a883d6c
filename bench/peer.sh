#!/bin/sh
# peer.sh: builds llama.cpp's llama-bench, llama-batched-bench, llama-server and llama-quantize natively into build/peer/bin, from the tree inside the
# source distribution of llama-cpp-python on PyPI. PEER_TREE=DIR uses a tree that is there already.
set -eu
cd "$(dirname "$0")/.."
[ -x build/peer/bin/llama-bench ] && [ -x build/peer/bin/llama-server ] && exit 0
mkdir -p build/peer
tree=${PEER_TREE:-build/peer/tree}
if [ ! -f "$tree/CMakeLists.txt" ]; then
    command -v cmake >/dev/null && command -v g++ >/dev/null || { echo "peer.sh: type: apt-get install -y cmake g++" >&2; exit 1; }
    ./setup.sh --venv peer numpy==1.26.4
    build/venv-peer/bin/pip download --quiet --no-deps --no-binary :all: --no-build-isolation -d build/peer llama-cpp-python==0.3.36 2>/dev/null ||
        build/venv-peer/bin/pip download --quiet --no-deps --no-binary :all: -d build/peer llama-cpp-python==0.3.36
    tar xzf build/peer/llama_cpp_python-0.3.36.tar.gz -C build/peer --strip-components=2 --wildcards 'llama_cpp_python-0.3.36/vendor/llama.cpp'
    mv build/peer/llama.cpp "$tree"
fi
cmake -S "$tree" -B build/peer/cmake -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_TOOLS=ON -DBUILD_SHARED_LIBS=OFF ${PEER_CMAKE:-} >build/peer/cmake.log 2>&1
cmake --build build/peer/cmake -j"$(nproc)" --target llama-bench llama-batched-bench llama-server llama-quantize >build/peer/build.log 2>&1 ||
    { tail -20 build/peer/build.log >&2; exit 1; }
mkdir -p build/peer/bin
cp build/peer/cmake/bin/llama-bench build/peer/cmake/bin/llama-batched-bench build/peer/cmake/bin/llama-server build/peer/cmake/bin/llama-quantize build/peer/bin/
