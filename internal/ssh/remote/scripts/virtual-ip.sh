# Lets the host hold a virtual IP address, or changes its configuration without losing the address. Prints REFUSED=reason
# if the host cannot hold it. Input after the parameters: a tar archive of files.
read_parameters
[ -n "$claim" ] && [ -n "$address" ] && [ -n "$own" ] && [ -n "$digest" ] || fail "a parameter is missing"
lock 30
recorded "$claim" || exit 3
refuse() {
	echo "REFUSED=$1"
	exit 0
}

unit=slipway-keepalived.service
keepalived=$state/current/bin/keepalived
[ -x $keepalived ] || keepalived=$(command -v keepalived) || refuse NoKeepalived
has socat && has ip || refuse NoKeepalived
device=$(ip -o addr show | awk -v own="$own" '{split($4, a, "/"); if (a[1] == own) {print $2; exit}}')
case $device in '' | *[!A-Za-z0-9._-]*) refuse NoInterface ;; esac

# Whether another machine has an address. The kernel resolves it for a packet that nothing has to receive.
answers() {
	ip neigh del "$1" dev $device 2>/dev/null
	case $1 in
	*:*) to=UDP6-DATAGRAM:[$1]:9 ;;
	*) to=UDP4-DATAGRAM:$1:9 ;;
	esac
	tries=0
	while [ $tries -lt 45 ]; do
		[ $((tries % 15)) != 0 ] || echo | socat -u - $to 2>/dev/null
		case $(ip neigh show to "$1" dev $device) in
		*lladdr*) return 0 ;;
		*FAILED*) return 1 ;;
		esac
		tries=$((tries + 1))
		sleep 0.1
	done
	return 1
}
is_gateway() {
	{ ip route show table all; ip -6 route show table all; } 2>/dev/null |
		awk -v address="$address" '{for (i = 1; i < NF; i++) if ($i == "via" && $(i + 1) == address) found = 1} END {exit !found}'
}

if ! systemctl is-active --quiet $unit || [ "$(cat $node/virtual-ip 2>/dev/null)" != "$address" ]; then
	case $(ip route get "$address" 2>/dev/null | head -n 1) in
	local*) refuse OwnAddress ;;
	broadcast* | multicast* | anycast* | *" via "*) refuse OtherSubnet ;;
	*" dev $device "*) ;;
	*) refuse OtherSubnet ;;
	esac
	! is_gateway || refuse Gateway
	[ "$unused" != true ] || ! answers "$address" || refuse Answers
	for other in $silent; do ! answers "$other" || refuse MemberAnswers; done
fi

stage=$node/virtual-ip.files
receive $node/virtual-ip.tar
rm -rf $stage && mkdir $stage && tar -xpf $node/virtual-ip.tar -C $stage || fail "the files cannot be unpacked"
rm -f $node/virtual-ip.tar
umask 022
mkdir -p /etc/slipway/keepalived /etc/systemd/system
rm -f /etc/slipway/keepalived/digest
install_file() {
	remember "$2"
	sed "s|@INTERFACE@|$device|g; s|@KEEPALIVED@|$keepalived|g" <"$stage/$1" >"$2.draft" && chmod "$3" "$2.draft" && mv "$2.draft" "$2" || fail "$2 cannot be written"
	[ ! -e /sys/fs/selinux/enforce ] || ! has restorecon || restorecon -F "$2" 2>/dev/null
}
install_file keepalived.conf /etc/slipway/keepalived/keepalived.conf 644
install_file check /etc/slipway/keepalived/check 755
install_file slipway-keepalived.service /etc/systemd/system/slipway-keepalived.service 644
rm -rf $stage
remember /etc/slipway/keepalived/digest
printf '%s\n' "$address" >$node/virtual-ip
systemctl daemon-reload
systemctl enable --quiet $unit 2>/dev/null
if systemctl is-active --quiet $unit; then
	systemctl reload $unit
else
	systemctl start $unit
fi || fail "keepalived does not start: $(journalctl -u $unit -n 5 -o cat 2>/dev/null)"
printf '%s\n' "$digest" >/etc/slipway/keepalived/digest
exit 0
