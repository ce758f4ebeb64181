package extensiontools

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// CompatibilityReport lists incompatible extensions, sorted. Commands print it as JSON too, so its fields are an
// interface for scripts.
type CompatibilityReport struct {
	// Broken are handlers of hooks, or hook versions, that the binary does not support. They would block the operations
	// that call them.
	Broken []string `json:"broken,omitempty"`
	// Deprecated are handlers of hook versions that will be removed.
	Deprecated []string `json:"deprecated,omitempty"`
}

// ReadCompatibility compares the extensions of a management cluster with the hooks of this binary, for `slipway up`,
// `slipway upgrade plan` and `slipway upgrade apply`. There are none if the CRD does not exist.
func ReadCompatibility(ctx context.Context, c client.Reader) (CompatibilityReport, error) {
	var list runtimev1.ExtensionConfigList
	switch err := c.List(ctx, &list); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return CompatibilityReport{}, nil
	case err != nil:
		return CompatibilityReport{}, fmt.Errorf("listing the extensions: %w", err)
	}
	return CheckCompatibility(hooks.Default(), list.Items), nil
}

// Err returns a fault if any extension would break; otherwise nil. `slipway extension check` and `slipway upgrade
// apply` return it.
func (r CompatibilityReport) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "ExtensionsWouldBreak",
		"this version of slipway cannot call %d of the hooks that extensions serve; install versions of the extensions that serve hooks of \"slipway extension openapi\", or delete their ExtensionConfigs, before you upgrade; \"slipway extension check\" lists them", len(r.Broken))
}

// CheckCompatibility compares the handlers of extensions with the hooks of a catalog. `slipway extension check` and
// [ReadCompatibility] call it.
func CheckCompatibility(catalog *hooks.Catalog, configs []runtimev1.ExtensionConfig) CompatibilityReport {
	var unknown, deprecated []hooks.ID
	for _, c := range configs {
		for _, h := range c.Status.Handlers {
			id, err := hooks.ParseID(h.RequestHook.APIVersion, h.RequestHook.Hook)
			if err != nil {
				continue // not a valid hook: the status was not written by a manager
			}
			switch known, ok := catalog.Hook(id); {
			case !ok:
				unknown = append(unknown, id)
			case known.Deprecation != nil:
				deprecated = append(deprecated, id)
			}
		}
	}
	var out CompatibilityReport
	for _, b := range hook.BrokenExtensions(distinct(unknown), configs) {
		out.Broken = append(out.Broken, b.String())
	}
	for _, b := range hook.BrokenExtensions(distinct(deprecated), configs) {
		known, _ := catalog.Hook(b.Hook)
		out.Deprecated = append(out.Deprecated, fmt.Sprintf("%s: %s", b, known.Deprecation.Advice()))
	}
	return out
}

func distinct(ids []hooks.ID) []hooks.ID {
	var out []hooks.ID
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
