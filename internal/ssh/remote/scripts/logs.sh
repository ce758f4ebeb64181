# Prints the last lines of a unit's journal, or of the log of the bootstrap data: at most as much as is read from a script.
read_parameters
if [ "$log_unit" = bootstrap ]; then
	[ -e $run/log ] || fail "no bootstrap data ran since the last boot"
	tail -n "$log_lines" $run/log | tail -c 1000000
	exit 0
fi
has journalctl || fail "the host has no journal"
journalctl -q --no-pager -o short-iso -u "$log_unit.service" -n "$log_lines" | tail -c 1000000
