package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipwayhq/slipway/internal/controllers/extensionconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/hook/wire"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Extensions says how Runtime Extensions are called.
type Extensions struct {
	// CertFile and KeyFile hold the client certificate that extensions see; empty: none. They are read again
	// when they change.
	CertFile, KeyFile string
	// ReadOnly takes over what another manager discovered, and writes nothing of it.
	ReadOnly bool
}

func (e Extensions) certificates() (*wire.Certificates, error) {
	if e.CertFile == "" && e.KeyFile == "" {
		return nil, nil
	}
	if e.CertFile == "" || e.KeyFile == "" {
		return nil, fault.New(fault.Invalid, "ClientCertificate",
			"--runtime-extension-client-cert-file and --runtime-extension-client-key-file belong together; set both or none")
	}
	return wire.NewCertificates(e.CertFile, e.KeyFile)
}

// PlannedExtensions calls Runtime Extensions for a plan, which tells it what their ExtensionConfigs say and which of them are for
// which namespaces.
func PlannedExtensions(cfg Extensions) (*hook.Extensions, error) {
	certificates, err := cfg.certificates()
	if err != nil {
		return nil, err
	}
	return hook.New(hook.Config{
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return labels.Set{}, nil }, Certificates: certificates,
	})
}

// addExtensions adds the Runtime SDK: what is known of extensions, and the controller that finds out.
func addExtensions(s loop.Setup, cfg Extensions) (*hook.Extensions, error) {
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
