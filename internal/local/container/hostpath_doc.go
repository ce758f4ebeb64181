// Package hostpath resolves paths of this host and refuses paths that no node may mount. [Guard.Resolve] follows
// symbolic links and refuses kernel file systems, devices and sockets, and the directories reserved by the caller,
// together with everything above and below them. Permissions of users are not checked here; the operator's policy is
// applied to the resolved path.
package container
