manifest=/etc/kubernetes/manifests/etcd.yaml
[ -e "$manifest" ] || { echo absent; exit 0; }
port=$(sed -n 's,^ *- --listen-metrics-urls=http://127.0.0.1:\([0-9]*\).*,\1,p' "$manifest")
timeout 10 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; cat <&3' - "${port:-2381}" 2>/dev/null |
	tr -d '\r' | grep -E '^(etcd_server_has_leader|etcd_server_proposals_committed_total|etcd_debugging_mvcc_current_revision) ' || echo silent
