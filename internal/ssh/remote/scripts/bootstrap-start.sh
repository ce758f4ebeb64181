# Starts bootstrap data as a unit of systemd. Input after the parameters: the data as a shell script.
claim= timeout=
mkdir -p $run && chmod 700 $run || fail "$run cannot be created"
: >$run/files
while IFS= read -r line; do
	[ -n "$line" ] || break
	case $line in
	CLAIM=*) claim=${line#*=} ;;
	TIMEOUT=*) timeout=${line#*=} ;;
	FILE=*) printf '%s\n' "${line#*=}" >>$run/files ;;
	esac
done
[ -n "$claim" ] && [ "$timeout" -gt 0 ] || fail "no claim or timeout"
grep -Fq "\"$claim\"" $etc/machine.json 2>/dev/null || exit 3
lock
if [ -e $node/started ]; then
	[ "$(cat $node/started)" != "$claim" ] || exit 0
	exit 3
fi
cat >$run/data.draft && mv $run/data.draft $run/data || fail "the bootstrap data cannot be stored"
while IFS= read -r file; do
	[ -e "$file" ] || remember "$file"
done <$run/files
# The script appends to this file.
if [ ! -e /etc/default/kubelet ]; then
	remember /etc/default/kubelet
elif ! installed /etc/default/kubelet; then
	cp -p /etc/default/kubelet $node/default-kubelet
fi
rm -f $run/files $run/exit $run/failure

# The unit runs this script. It deletes the data in any case.
cat >$run/run <<'END'
#!/bin/sh
run=/run/slipway/bootstrap node=/var/lib/slipway/node
umask 022
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/var/lib/slipway/current/bin
export PATH
cd /
trap 'rm -f $run/data' EXIT
timeout -k 10 "$2" /bin/sh $run/data >$run/log 2>&1 </dev/null
code=$?
rm -f $run/data
if [ -e /run/cluster-api/bootstrap-success.complete ]; then
	(umask 077; printf '%s\n' "$1" >$node/bootstrapped.draft && mv $node/bootstrapped.draft $node/bootstrapped)
elif [ $code = 124 ]; then
	echo timeout >$run/failure
fi
echo $code >$run/exit
END
: >$run/log
chmod 600 $run/log
printf '%s\n' "$claim" >$node/started.draft && mv $node/started.draft $node/started
systemctl reset-failed slipway-bootstrap.service 2>/dev/null
systemd-run --quiet --unit=slipway-bootstrap --collect --property=Type=exec /bin/sh $run/run "$claim" "$timeout" 9>&- && exit 0
systemctl is-active --quiet slipway-bootstrap.service && exit 0
systemd-run --quiet --unit=slipway-bootstrap /bin/sh $run/run "$claim" "$timeout" 9>&- && exit 0
rm -f $node/started $run/data
fail "the unit cannot be started"
