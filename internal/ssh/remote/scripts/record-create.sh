# Creates the record of a claim, atomically: the link fails if there is a record. Before that, writes the inventory of
# the host. Input after the parameters: the record.
read_parameters
[ -n "$claim" ] || fail "no claim"
mkdir -p $etc || fail "$etc cannot be created"
lock 45
chmod 755 $etc $state
if [ -e $etc/machine.json ] || [ -L $etc/machine.json ]; then
	recorded "$claim" || exit 3
	exit 0
fi
! kubelet_runs || exit 6
# The record was deleted before the host was cleaned.
[ ! -e $node/installed ] && [ ! -e $node/started ] || exit 7
# The modules that are loaded for the node, also by containerd, and unloaded with it.
for module in $node_modules; do [ -d /sys/module/$module ] || echo $module; done >$node/modules || fail "the inventory cannot be written"
# Networks of Pods replace plugins that were there before. Without a copy, cleaning can only report them.
rm -rf $node/plugins
[ ! -d /opt/cni/bin ] || { mkdir $node/plugins && cp -a --reflink=auto /opt/cni/bin/. $node/plugins 2>/dev/null; } || rm -rf $node/plugins
{ echo "claim $claim" && inventory; } >$node/inventory.draft && mv $node/inventory.draft $node/inventory || fail "the inventory cannot be written"
rm -f $state/cleaned.json
for name in $settings; do
	file=$(setting_file $name)
	[ ! -e "$file" ] || echo "$name=$(cat "$file")"
done >$node/sysctl
rm -f $etc/.machine.json.* # of a script that was killed
draft=$etc/.machine.json.$$
receive $draft
chmod 644 $draft || fail "$etc cannot be written"
# A host that loses power now has a complete record or none.
sync $node/inventory $node/sysctl $node/modules $draft 2>/dev/null
ln $draft $etc/machine.json 2>/dev/null
linked=$?
rm -f $draft
[ $linked = 0 ] || exit 3
sync $etc/machine.json 2>/dev/null
exit 0
