# Prints whether the host can hold a virtual IP address, and whether it holds it.
read_parameters
recorded "$claim" || exit 3
echo "DIGEST=$(head -c 64 $etc/keepalived/digest 2>/dev/null)"
! systemctl is-active --quiet slipway-keepalived.service || echo RUNNING=true
! ip -o addr show 2>/dev/null | awk -v address="$address" '{split($4, a, "/"); if (a[1] == address) found = 1} END {exit !found}' || echo HOLDS=true
exit 0
