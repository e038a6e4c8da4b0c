#!/usr/bin/env bash
# Checks with Docker that a real TensorFlow Serving returns the same translations
# as the export in Python. (Docker was not available during development.)
#   export/check_with_docker.sh [--gpu]
# It starts the services of docker-compose.yml with the newest export in
# models/translator, compares their answers with Python's, and stops them. With
# --gpu it uses the server's GPU image. Python (the variable PYTHON, or python3)
# needs the package with its extra `serving`. The last line is "all is well" and
# the exit status 0; otherwise it names what failed and the exit status is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python=${PYTHON:-python3}

fail() {
  echo "check_with_docker: $*" >&2
  exit 1
}

compose=(docker compose --file docker-compose.yml)
case ${1:-} in
  "") ;;
  --gpu) compose+=(--file docker-compose.gpu.yml) ;;
  *) fail "'$1' is unknown, wanted --gpu or no argument" ;;
esac
command -v docker >/dev/null || fail "docker is not installed"
docker info >/dev/null 2>&1 ||
  fail "the Docker daemon does not answer: is it started, and may you use it?"
docker compose version >/dev/null 2>&1 ||
  fail "docker has no compose: install docker-compose-plugin"
"$python" -c 'import tensorflow_text, tensorflow_serving' 2>/dev/null ||
  fail "$python lacks packages: run pip install '.[serving]', or set PYTHON"
version=$(find models/translator -maxdepth 1 -name '[0-9]*' 2>/dev/null |
  sort --version-sort | tail --lines=1) || true
[[ -n $version ]] ||
  fail "$PWD/models/translator has no export: run bahdanau-tf export first"

export PYTHONUTF8=1 TF_CPP_MIN_LOG_LEVEL=3
sentences=$'A man sleeps.\n\nTwo dogs run.\nNobody knows: 猫 א 😀'
count=$(wc --lines <<<"$sentences")
wanted=$("$python" -c '
import sys
import tensorflow as tf
import tensorflow_text
sentences = tf.constant(sys.argv[2].split("\n"))
loaded = tf.saved_model.load(sys.argv[1])
found = loaded.signatures["serving_default"](text=sentences)["translation"]
sys.stdout.buffer.write(b"\n".join(found.numpy()))
' "$version" "$sentences")

compare() {
  local name=$1 found
  shift
  found=$("$@" <<<"$sentences") || fail "$name: no answer"
  [[ $found == "$wanted" ]] || fail "$name: '$found', not '$wanted'"
  echo "$name: $count of $count translations as in Python"
}

trap '"${compose[@]}" down' EXIT
"${compose[@]}" up --detach --wait ||
  fail "the server does not start: ${compose[*]} logs translator"
bash health_check.sh
compare "REST" "$python" rest_client.py
compare "gRPC" "$python" grpc_client.py --plaintext
compare "through nginx" "$python" rest_client.py --url http://localhost:8080
echo "all is well"
