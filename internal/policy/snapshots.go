package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// DeniedSnapshotFolder returns why snapshots of the namespace may not be stored in the folder of this host,
// or an empty string if they may.
func (c Configuration) DeniedSnapshotFolder(namespace, folder string) string {
	clean := path.Clean(folder)
	for _, f := range c.Snapshots.Folders {
		if (clean == f.Path || strings.HasPrefix(clean, f.Path+"/")) && (len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, namespace)) {
			return ""
		}
	}
	return fmt.Sprintf("Folder %s of this host may not have snapshots of namespace %s: leave spec.destination.folder.path empty, or ask the operator to allow it in snapshots.folders %s", clean, namespace, where)
}

// DeniedSnapshotEndpoint returns why the manager may not connect to the endpoint of a snapshot store, or an
// empty string if it may.
func (c Configuration) DeniedSnapshotEndpoint(endpoint string) string {
	if slices.Contains(c.Snapshots.Endpoints, endpoint) {
		return ""
	}
	return fmt.Sprintf("Endpoint %s may not be used for snapshots, because the manager would connect to it from this host: choose another one, or ask the operator to allow it in snapshots.endpoints %s", endpoint, where)
}
