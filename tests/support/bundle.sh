#!/bin/sh
# bundle.sh: build/tests/bundle, packed from the demo model and signed by build/tests/keys/publisher; made anew when program or model changed.
set -eu
ingot=${B:-build}/ingot
d=build/tests
mkdir -p $d
stamp=$(sha256sum "$ingot" build/demo-model.gguf | sha256sum)
[ "$(cat $d/bundle.stamp 2>/dev/null)" = "$stamp" ] && exit 0
rm -rf $d/bundle $d/bundle.partial $d/keys $d/bundle.stamp
mkdir -p $d/keys
$ingot keygen publisher $d/keys/publisher >/dev/null
$ingot pack build/demo-model.gguf $d/bundle --name smollm2-135m-instruct --license build/demo-model.LICENSE --json >/dev/null
$ingot sign $d/bundle --key $d/keys/publisher --json >/dev/null
echo "$stamp" >$d/bundle.stamp
