# Prints the last lines of a unit's journal, or the log of the bootstrap data.
read_parameters
if [ "$log_unit" = bootstrap ]; then
	[ -e $run/log ] || fail "no bootstrap data ran since the last boot"
	tail -n "$log_lines" $run/log
	exit 0
fi
has journalctl || fail "the host has no journal"
journalctl -q --no-pager -o short-iso -u "$log_unit.service" -n "$log_lines"
