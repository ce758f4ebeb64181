# Deletes the record if it is the one of the claim, and then the state of the node.
read_parameters
[ -n "$claim" ] || fail "no claim"
[ -e $etc/machine.json ] || [ -e $node ] || exit 0
lock 45
if [ -e $etc/machine.json ]; then
	recorded "$claim" || exit 3
	rm -f $etc/machine.json || fail "the record cannot be deleted"
	sync $etc 2>/dev/null
else
	inventoried "$claim" || exit 0
fi
rm -rf $node || fail "$node cannot be deleted"
rmdir $etc 2>/dev/null
exit 0
