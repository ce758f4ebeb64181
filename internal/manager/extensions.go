package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipwayhq/slipway/internal/controllers/extensionconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/hook/wire"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Extensions says how Runtime Extensions are called.
type Extensions struct {
	// CertFile and KeyFile hold the client certificate that extensions see (RT-17); empty: none. They are read again
	// when they change.
	CertFile, KeyFile string
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

// addExtensions adds the Runtime SDK: what is known of extensions, and the controller that finds out.
func addExtensions(s loop.Setup, cfg Extensions) (*hook.Extensions, error) {
	certificates, err := cfg.certificates()
	if err != nil {
		return nil, err
	}
	extensions, err := hook.New(hook.Config{
		NamespaceLabels: namespaceLabels(s.Manager.GetClient()), Certificates: certificates, Registerer: ctrlmetrics.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing calls of Runtime Extensions: %w", err)
	}
	return extensions, extensionconfig.Add(s, extensions, extensionconfig.Settings{})
}

// namespaceLabels reads the labels of Namespaces from a cache of their metadata, which begins with the first question.
func namespaceLabels(c client.Reader) func(context.Context, string) (labels.Set, error) {
	return func(ctx context.Context, namespace string) (labels.Set, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		if err := c.Get(ctx, client.ObjectKey{Name: namespace}, o); err != nil {
			return nil, err
		}
		return o.Labels, nil
	}
}
