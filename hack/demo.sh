#!/usr/bin/env bash
# From nothing to a running workload cluster: starts the management cluster, applies examples/quickstart.yaml, and shows
# what comes of it.
set -euo pipefail
slipway=$1
data=$2
cluster=quickstart

say() { printf '\n==> %s\n' "$*"; }

say "starting the management cluster"
"$slipway" status --data-dir "$data" | grep -q 'Management cluster: *Running' || "$slipway" up --detach --data-dir "$data"

say "applying examples/quickstart.yaml"
"$slipway" kubectl --kubeconfig "$data/kubeconfig" apply -f "$(dirname "$0")/../examples/quickstart.yaml"

say "waiting for Cluster $cluster"
"$slipway" wait cluster "$cluster" --data-dir "$data"

say "the nodes of the workload cluster"
"$slipway" get kubeconfig "$cluster" --data-dir "$data" --output-file "$data/$cluster.kubeconfig"
"$slipway" kubectl --kubeconfig "$data/$cluster.kubeconfig" get nodes -o wide

cat <<EOF

Next steps:
  $slipway describe cluster $cluster --data-dir $data
  $slipway kubectl --kubeconfig $data/$cluster.kubeconfig get pods -A
  $slipway explain cluster/$cluster --data-dir $data
  $slipway down --delete --data-dir $data      (stops and removes everything; also: make clean)
EOF
