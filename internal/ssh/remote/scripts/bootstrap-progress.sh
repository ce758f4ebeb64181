# Prints the progress of bootstrap data: NAME=value lines, an empty line, and the end of the log.
read_parameters
[ -n "$claim" ] || fail "no claim"
state_is() {
	echo "STATE=$1"
	[ ! -e $run/exit ] || echo "EXIT=$(head -c 8 $run/exit)"
	[ ! -e /run/slipway/bootstrap.stage ] || echo "STAGE=$(head -c 128 /run/slipway/bootstrap.stage | head -n 1)"
	[ -z "${2:-}" ] || echo "FAILURE=$2"
	echo
	tail -c 16384 $run/log 2>/dev/null
	exit 0
}
[ -e $node/started ] || state_is None
[ "$(cat $node/started)" = "$claim" ] || exit 3
if [ "$(cat $node/bootstrapped 2>/dev/null)" = "$claim" ]; then state_is Done; fi
report() {
	if systemctl is-active --quiet slipway-bootstrap.service || [ "$(systemctl show -p ActiveState --value slipway-bootstrap.service 2>/dev/null)" = activating ]; then
		state_is Running
	fi
	if [ -e $run/exit ]; then
		if [ "$(cat $node/bootstrapped 2>/dev/null)" = "$claim" ]; then state_is Done; fi
		state_is Failed "$(head -c 16 $run/failure 2>/dev/null)"
	fi
}
report
# The script that starts the unit may still run, and has the lock. When it has ended, the unit has started.
exec 9>>$state/lock
flock -n -s 9 || state_is Running
report
[ -d $run ] || state_is Failed reboot
state_is Failed stopped
