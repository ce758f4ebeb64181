# Deletes the bundles, if no claim uses the host. After a claim, the checklist of its cleaning stays.
read_parameters
lock 120
[ ! -e $etc/machine.json ] || exit 3
rm -rf $state/bundles $state/current $state/lib $state/files.begin $state/files.finish
[ -n "$claim" ] || rm -f $state/cleaned.json $state/preparing $state/lock
rmdir $node 2>/dev/null
rmdir $state 2>/dev/null
exit 0
