#!/usr/bin/env bash
# Checks that the server has a version of the model ready: exit status 0 or 1.
#   health_check.sh [HOST [PORT [MODEL]]]
# Needs only bash, so it also runs inside the official image.
set -euo pipefail
host=${1:-localhost} port=${2:-8501} model=${3:-translator}

if ! { exec 3<>"/dev/tcp/$host/$port"; } 2>/dev/null; then
  echo "$host:$port does not answer" >&2
  exit 1
fi
printf 'GET /v1/models/%s HTTP/1.0\r\nHost: %s\r\n\r\n' "$model" "$host" >&3
answer=
while IFS= read -r -t 5 line <&3 || [[ -n $line ]]; do
  answer+=$line$'\n'
done

if [[ $answer != *'"AVAILABLE"'* ]]; then
  echo "$model is not available at $host:$port: $answer" >&2
  exit 1
fi
echo "$model is available at $host:$port"
