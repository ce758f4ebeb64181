package hooks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name identifies a hook in all its versions.
type Name struct {
	// Group is the API group, such as "hooks.runtime.cluster.x-k8s.io".
	Group string
	// Hook is the name of the hook, such as "BeforeClusterCreate".
	Hook string
}

// String returns the hook and its group, as in "BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io".
func (n Name) String() string { return n.Hook + "." + n.Group }

// ID identifies one version of a hook.
type ID struct {
	Name
	// Version is the API version, such as "v1alpha1".
	Version string
}

// ParseID parses the field requestHook in discovery responses and status.handlers: an apiVersion and the name of a
// hook.
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

// RequestKind returns the kind of the hook's requests.
func (id ID) RequestKind() string { return id.Hook + "Request" }

// ResponseKind returns the kind of the hook's responses.
func (id ID) ResponseKind() string { return id.Hook + "Response" }

// String returns the hook with its group and version, as in "hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=Discovery".
func (id ID) String() string { return id.APIVersion() + ", Hook=" + id.Hook }

// Path returns the path at which the hook is served, in lower case. It ends with the handler, or with the hook if
// handler is empty, as for Discovery.
func (id ID) Path(handler string) string {
	path := "/" + id.Group + "/" + id.Version + "/" + strings.ToLower(id.Hook)
	if handler == "" {
		return path
	}
	return path + "/" + strings.ToLower(handler)
}
