package webhook

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Server is the part of the webhook server that Register uses.
type Server interface {
	Register(path string, handler http.Handler)
}

// Options configures the handlers. The manager and `slipway plan` fill them in.
type Options struct {
	// Gates are the enabled feature gates.
	Gates admission.Gates

	// Policy restricts users who write objects.
	Policy policy.Configuration

	// KubernetesVersions returns the versions that hosted control planes can run.
	KubernetesVersions func() []string

	// VersionOf returns the version for references in older API versions; see CRDVersions.
	VersionOf conversion.VersionOf

	// Sets are the providers whose webhooks are served. Nil means all.
	Sets []providerset.Set

	// Live reads from the API server, not from the cache, for the rules of managed topologies. It is not used
	// if their feature gate is disabled.
	Live client.Reader

	// Caller is the common name in the API server's client certificate. Other clients are rejected, because
	// responses can contain information about all namespaces. If it is empty, all clients are served, for API
	// servers without a client certificate for webhooks.
	Caller string
}

func (o Options) sets() []providerset.Set { return Address{Sets: o.Sets}.sets() }

// Register adds the handlers for defaulting, validation and conversion to the manager's webhook server, before it
// starts.
func Register(server Server, opts Options) error {
	converter, err := conversion.New(opts.VersionOf)
	if err != nil {
		return err
	}
	r := newReviewer(opts)
	r.restored = &restoration{converter: converter}
	gate := newGate(opts.Caller)
	for path, handle := range map[string]ctrladmission.HandlerFunc{mutatePath: r.mutate, validatePath: r.validate} {
		handler, err := ctrladmission.StandaloneWebhook(&ctrladmission.Webhook{Handler: handle},
			ctrladmission.StandaloneOptions{MetricsPath: path})
		if err != nil {
			return fmt.Errorf("serving %s: %w", path, err)
		}
		server.Register(path, gate.before(handler, maxAdmissionBytes))
	}
	registry, err := registryOf(converter, providerset.CRDs(opts.sets()))
	if err != nil {
		return err
	}
	server.Register(convertPath, gate.before(ctrlconversion.NewWebhookHandler(converter.Scheme(), registry), maxConversionBytes))
	return nil
}

// registryOf registers the kinds of these CRDs with controller-runtime's conversion handler.
func registryOf(converter *conversion.Converter, crds []string) (ctrlconversion.Registry, error) {
	registry := ctrlconversion.NewRegistry()
	seen := map[schema.GroupKind]bool{}
	for kind := range converter.Scheme().AllKnownTypes() {
		if seen[kind.GroupKind()] || !slices.Contains(crds, contract.CRDName(kind.Group, kind.Kind)) {
			continue
		}
		seen[kind.GroupKind()] = true
		if err := registry.RegisterConverter(kind.GroupKind(), adapter{converter}); err != nil {
			return nil, fmt.Errorf("serving the conversion of %s: %w", kind.GroupKind(), err)
		}
	}
	return registry, nil
}

// adapter lets controller-runtime call the converter.
type adapter struct{ converter *conversion.Converter }

// ConvertObject fills dst, a pointer to an empty object of the target version.
func (a adapter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	wanted := dst.GetObjectKind().GroupVersionKind()
	out, err := a.converter.Convert(src, wanted.Version)
	if err != nil {
		return err
	}
	from, to := reflect.ValueOf(out), reflect.ValueOf(dst)
	if from.Type() != to.Type() {
		return fmt.Errorf("converting %s: got %T", wanted, out)
	}
	to.Elem().Set(from.Elem())
	return nil
}
