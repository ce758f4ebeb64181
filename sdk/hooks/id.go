package hooks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is what all versions of one hook have in common.
type Name struct {
	// Group of the API, such as "hooks.runtime.cluster.x-k8s.io".
	Group string
	// Hook is its name, such as "BeforeClusterCreate".
	Hook string
}

// String returns the hook and its group, as in "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io".
func (n Name) String() string { return n.Hook + "." + n.Group }

// ID names one version of one hook.
type ID struct {
	Name
	// Version of the API, such as "v1alpha1".
	Version string
}

// ParseID reads what discovery and status.handlers call requestHook: an apiVersion and the name of a hook.
func ParseID(apiVersion, hook string) (ID, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ID{}, fmt.Errorf("apiVersion %q: want <group>/<version>", apiVersion)
	}
	if gv.Group == "" || gv.Version == "" {
		return ID{}, fmt.Errorf("apiVersion %q: want <group>/<version>", apiVersion)
	}
	if hook == "" {
		return ID{}, fmt.Errorf("the hook of %s has no name", apiVersion)
	}
	return ID{Name: Name{Group: gv.Group, Hook: hook}, Version: gv.Version}, nil
}

// APIVersion returns "<group>/<version>", which is also the apiVersion of requests and responses.
func (id ID) APIVersion() string { return id.Group + "/" + id.Version }

// RequestKind is the kind that a request of the hook carries.
func (id ID) RequestKind() string { return id.Hook + "Request" }

// ResponseKind is the kind that a response of the hook carries.
func (id ID) ResponseKind() string { return id.Hook + "Response" }

// String returns the hook with its group and version, as in "hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=Discovery".
func (id ID) String() string { return id.APIVersion() + ", Hook=" + id.Hook }

// Path returns the path below which the hook is served, in lower case as of the hook's name: it ends with the handler,
// or with the hook where handler is empty, as for Discovery.
func (id ID) Path(handler string) string {
	path := "/" + id.Group + "/" + id.Version + "/" + strings.ToLower(id.Hook)
	if handler == "" {
		return path
	}
	return path + "/" + strings.ToLower(handler)
}
