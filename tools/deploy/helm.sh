#!/bin/sh
# Builds Helm, with which the chart is linted and rendered in tests: a few minutes, once.
set -eu
GOBIN="${RELEVO_CACHE:-$HOME/.cache/relevo}/helm" go install helm.sh/helm/v3/cmd/helm@v3.19.0
