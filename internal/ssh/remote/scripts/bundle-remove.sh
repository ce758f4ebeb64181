# Deletes the bundles, if no claim uses the host.
lock 120
[ ! -e $etc/machine.json ] || exit 3
rm -rf $state/bundles $state/current $state/lib $state/files.begin $state/files.finish $state/cleaned.json $state/preparing $state/lock
rmdir $node 2>/dev/null
rmdir $state 2>/dev/null
exit 0
