package hook

import runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

// RefreshAnnotation, of an ExtensionConfig, requests that its extension is discovered once more, now, and that answers kept from it
// are not used any more. Its value says which request it is. The controller of ExtensionConfigs removes it when that is done.
const RefreshAnnotation = "extension.slipway.dev/refresh"

// RefreshOf names the request to discover an extension once more; empty: there is none.
func RefreshOf(c *runtimev1.ExtensionConfig) string {
	value, requested := c.Annotations[RefreshAnnotation]
	if !requested {
		return ""
	}
	return "=" + value
}

// refreshed records for which request a discovery was made. The mutex must be held.
func (x *extension) refreshed(request string) {
	if request != "" && request != x.refresh {
		x.refreshes++
	}
	x.refresh = request
}
