package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipwayhq/slipway/internal/controllers/extensionconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Extensions configures the calls of Runtime Extensions.
type Extensions struct {
	// CertFile and KeyFile are the client certificate for calls of extensions. They are reloaded when they
	// change. Empty means no client certificate.
	CertFile, KeyFile string
	// ReadOnly uses the extensions that another manager discovered, without writing ExtensionConfigs.
	ReadOnly bool
}

func (e Extensions) certificates() (*hook.ClientCertificates, error) {
	if e.CertFile == "" && e.KeyFile == "" {
		return nil, nil
	}
	if e.CertFile == "" || e.KeyFile == "" {
		return nil, fault.New(fault.Invalid, "ClientCertificate",
			"--runtime-extension-client-cert-file and --runtime-extension-client-key-file belong together; set both or none")
	}
	return hook.NewCertificates(e.CertFile, e.KeyFile)
}

// PlannedExtensions returns a client of Runtime Extensions for `slipway plan`. The plan supplies the discovered
// ExtensionConfigs and the namespaces that they select.
func PlannedExtensions(cfg Extensions) (*hook.Extensions, error) {
	certificates, err := cfg.certificates()
	if err != nil {
		return nil, err
	}
	return hook.New(hook.Config{
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return labels.Set{}, nil }, Certificates: certificates,
	})
}

// addExtensions adds, for the first controller that calls extensions, the registry of Runtime Extensions and the
// controller that discovers them.
func addExtensions(s reconciler.Setup, cfg Extensions) (*hook.Extensions, error) {
	certificates, err := cfg.certificates()
	if err != nil {
		return nil, err
	}
	extensions, err := hook.New(hook.Config{
		NamespaceLabels: hook.NamespaceLabels(s.Manager.GetClient()), Certificates: certificates,
		Registerer: ctrlmetrics.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing calls of Runtime Extensions: %w", err)
	}
	return extensions, extensionconfig.Add(s, extensions, extensionconfig.Settings{ReadOnly: cfg.ReadOnly})
}
