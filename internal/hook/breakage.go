package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Breakage is an extension that the removal of a version of a hook would break.
type Breakage struct {
	Extension string
	// Hook is the version to be removed; Handlers are the handlers that serve it, sorted.
	Hook     hooks.ID
	Handlers []string
}

func (b Breakage) String() string {
	return fmt.Sprintf("ExtensionConfig %s: %s of %s is served by %s", b.Extension, b.Hook.Hook, b.Hook.APIVersion(),
		strings.Join(b.Handlers, ", "))
}

// BrokenExtensions returns the extensions that the removal of versions of hooks would break, according to the handlers
// in the status of the ExtensionConfigs. It is sorted by extension, then hook. The checks before an upgrade of Slipway
// call it (package extensiontools).
func BrokenExtensions(removed []hooks.ID, configs []runtimev1.ExtensionConfig) []Breakage {
	var out []Breakage
	for i := range configs {
		found := map[hooks.ID][]string{}
		for _, h := range configs[i].Status.Handlers {
			id, err := hooks.ParseID(h.RequestHook.APIVersion, h.RequestHook.Hook)
			if err == nil && slices.Contains(removed, id) {
				found[id] = append(found[id], h.Name)
			}
		}
		for id, handlers := range found {
			slices.Sort(handlers)
			out = append(out, Breakage{Extension: configs[i].Name, Hook: id, Handlers: handlers})
		}
	}
	slices.SortFunc(out, func(a, b Breakage) int {
		return cmp.Or(cmp.Compare(a.Extension, b.Extension), cmp.Compare(a.Hook.String(), b.Hook.String()))
	})
	return out
}
