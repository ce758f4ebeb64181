package up

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// warnOfExtensions prints warnings about extension handlers that this version of slipway cannot call, before `slipway
// up` starts the manager (service.run). The start continues: otherwise no cluster would have a manager, and only
// Clusters that call these hooks are blocked.
func warnOfExtensions(ctx context.Context, root *rest.Config, v progressReporter) {
	report, err := readExtensions(ctx, root)
	if err != nil {
		if ctx.Err() == nil {
			klog.ErrorS(err, "checking whether this version can call the extensions failed")
		}
		return
	}
	for _, line := range extensionWarnings(report) {
		v.step(line)
	}
}

func readExtensions(ctx context.Context, root *rest.Config) (extensiontools.CompatibilityReport, error) {
	scheme, err := management.Scheme()
	if err != nil {
		return extensiontools.CompatibilityReport{}, err
	}
	c, err := client.New(root, client.Options{Scheme: scheme})
	if err != nil {
		return extensiontools.CompatibilityReport{}, err
	}
	return extensiontools.ReadCompatibility(ctx, c)
}

// extensionWarnings returns the warnings about extensions.
func extensionWarnings(r extensiontools.CompatibilityReport) []string {
	var out []string
	for _, handler := range r.Broken {
		out = append(out, fmt.Sprintf("Warning: this version of slipway cannot call the extension handler %s. "+
			"What calls it is held back: install a version of the extension that serves hooks of \"slipway extension openapi\", or delete its ExtensionConfig", handler))
	}
	for _, handler := range r.Deprecated {
		out = append(out, "Warning: extension handler of a deprecated hook: "+handler)
	}
	return out
}
