// Package compatibility checks which extensions of a management cluster this binary cannot call. Before an upgrade,
// with the new binary, it compares the handlers in the status of ExtensionConfigs with the hooks of the binary
// ([Check], [Read]). It changes nothing and calls no extension. [Report.Err] prevents an upgrade.
package compatibility

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

// Report lists incompatible extensions, sorted.
type Report struct {
	// Broken are handlers of hooks, or hook versions, that the binary does not support. They would block the operations
	// that call them.
	Broken []string `json:"broken,omitempty"`
	// Deprecated are handlers of hook versions that will be removed.
	Deprecated []string `json:"deprecated,omitempty"`
}

// Read compares the extensions of a management cluster with the hooks of this binary. There are none if the CRD does
// not exist.
func Read(ctx context.Context, c client.Reader) (Report, error) {
	var list runtimev1.ExtensionConfigList
	switch err := c.List(ctx, &list); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return Report{}, nil
	case err != nil:
		return Report{}, fmt.Errorf("listing the extensions: %w", err)
	}
	return Check(hooks.Default(), list.Items), nil
}

// Err returns a fault if any extension would break; otherwise nil.
func (r Report) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "ExtensionsWouldBreak",
		"this version of slipway cannot call %d of the hooks that extensions serve; install versions of the extensions that serve hooks of \"slipway extension openapi\", or delete their ExtensionConfigs, before you upgrade; \"slipway extension check\" lists them", len(r.Broken))
}

// Check compares the handlers of extensions with the hooks of a catalog.
func Check(catalog *hooks.Catalog, configs []runtimev1.ExtensionConfig) Report {
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
	var out Report
	for _, b := range hook.Broken(distinct(unknown), configs) {
		out.Broken = append(out.Broken, b.String())
	}
	for _, b := range hook.Broken(distinct(deprecated), configs) {
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
