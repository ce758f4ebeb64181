package hook

import runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

// RefreshAnnotation on an ExtensionConfig requests a discovery now and invalidates the cached responses of the
// extension. Its value identifies the request. `slipway extension refresh` sets it; the ExtensionConfig controller
// removes it when the discovery is done.
const RefreshAnnotation = "extension.slipway.dev/refresh"

// RefreshRequest returns an identifier of the refresh request on an ExtensionConfig, or an empty string if there is
// none. The value of the annotation may be empty, so the identifier has a prefix. The ExtensionConfig controller and
// the registry compare it with the last served request.
func RefreshRequest(c *runtimev1.ExtensionConfig) string {
	value, requested := c.Annotations[RefreshAnnotation]
	if !requested {
		return ""
	}
	return "=" + value
}

// refreshed records the refresh request that a discovery served. The mutex must be held.
func (x *extension) refreshed(request string) {
	if request != "" && request != x.refresh {
		x.refreshes++
	}
	x.refresh = request
}
