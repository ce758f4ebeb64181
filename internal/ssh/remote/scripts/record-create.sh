# Creates the record of a claim, atomically: the link fails if there is a record. Writes the inventory of the host
# before its first change. Input after the parameters: the record.
claim=
while IFS= read -r line; do
	[ -n "$line" ] || break
	case $line in
	CLAIM=*) claim=${line#*=} ;;
	esac
done
[ -n "$claim" ] || fail "no claim"
mkdir -p $etc $node || fail "/etc/slipway or /var/lib/slipway cannot be created"
chmod 755 $etc $state
draft=$etc/.machine.json.$$
cat >$draft && chmod 644 $draft || fail "$etc cannot be written"
if ln $draft $etc/machine.json 2>/dev/null; then
	rm -f $draft
	sync $etc/machine.json 2>/dev/null
else
	rm -f $draft
	grep -Fqx "  \"claimID\": \"$claim\"," $etc/machine.json 2>/dev/null || grep -Fqx "  \"claimID\": \"$claim\"" $etc/machine.json 2>/dev/null || exit 3
fi
[ -e $node/inventory ] || { inventory >$node/inventory.draft && mv $node/inventory.draft $node/inventory; }
