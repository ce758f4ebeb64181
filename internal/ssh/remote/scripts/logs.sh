# Prints the last lines of a unit's journal, or the log of the bootstrap data.
unit= lines=
while IFS= read -r line; do
	[ -n "$line" ] || break
	case $line in
	UNIT=*) unit=${line#*=} ;;
	LINES=*) lines=${line#*=} ;;
	esac
done
if [ "$unit" = bootstrap ]; then
	[ -e $run/log ] || fail "no bootstrap data ran since the last boot"
	tail -n "$lines" $run/log
	exit 0
fi
has journalctl || fail "the host has no journal"
journalctl -q --no-pager -o short-iso -u "$unit.service" -n "$lines"
