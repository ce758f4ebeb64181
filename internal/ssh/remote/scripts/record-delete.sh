# Deletes the record if it is the one of the claim. The directory of the node's state goes with it.
claim=
while IFS= read -r line; do
	[ -n "$line" ] || break
	case $line in
	CLAIM=*) claim=${line#*=} ;;
	esac
done
[ -n "$claim" ] || fail "no claim"
[ -e $etc/machine.json ] || exit 0
grep -Fqx "  \"claimID\": \"$claim\"," $etc/machine.json || grep -Fqx "  \"claimID\": \"$claim\"" $etc/machine.json || exit 3
rm -rf $node && rm -f $etc/machine.json || fail "the record cannot be deleted"
rmdir $etc 2>/dev/null
exit 0
