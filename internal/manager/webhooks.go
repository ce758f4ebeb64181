package manager

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/openapi"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// WebhookService is the default Service in front of managers that do not run on the API server's machine. The manifests
// of a release contain it.
const WebhookService = "slipway-webhook"

// inPod is an environment variable that is set in Pods.
const inPod = "KUBERNETES_SERVICE_HOST"

// WebhookAddress returns the address at which the API server calls the webhooks. It is exported for `slipway manager`,
// which looks for another manager at the addresses of the webhooks.
func (c Config) WebhookAddress() webhook.Address {
	out := webhook.Address{Sets: c.Policy.Sets(), MostReplicas: c.Policy.Maxima.Replicas}
	if w := c.Webhook; w.Local {
		out.URL = "https://" + net.JoinHostPort(w.Host, strconv.Itoa(w.Port))
		return out
	}
	out.Service = webhook.Service{Namespace: c.home(), Name: c.Webhook.Service}
	return out
}

// prepareWebhooks creates the serving certificate and installs CRDs and webhook configurations. [Run] calls it before
// the manager starts. If the certificate is externally managed, the configurations are, too, and the result is nil.
func prepareWebhooks(ctx context.Context, cfg Config) (*webhook.Certificates, error) {
	if cfg.Webhook.CertDir != "" {
		return nil, nil
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(cfg.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	if cfg.Home == "" {
		if err := ensureNamespace(ctx, live); err != nil {
			return nil, err
		}
	}
	if os.Getenv(inPod) == "" { // a Pod may start before its Service exists
		if err := checkService(ctx, live, cfg.WebhookAddress()); err != nil {
			return nil, err
		}
	}
	certificates := webhook.NewCertificates(live, cfg.home(), cfg.WebhookAddress())
	if err := certificates.Load(ctx); err != nil {
		return nil, err
	}
	return certificates, webhook.Install(ctx, live, cfg.WebhookAddress(), certificates.CA())
}

// checkService rejects an address that refers to a missing Service. Otherwise every write to the management
// cluster would fail without an error in this process. If Services cannot be read, the check is skipped.
func checkService(ctx context.Context, c client.Reader, a webhook.Address) error {
	if a.URL != "" {
		return nil
	}
	at := client.ObjectKey{Namespace: a.Service.Namespace, Name: a.Service.Name}
	err := c.Get(ctx, at, &corev1.Service{})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return fault.New(fault.Invalid, "WebhookServiceMissing",
			"the API server is to reach the webhooks through Service %s, which does not exist: where this program does not run in a Pod, start it with --webhook-host and an address of this machine that the API server reaches; otherwise create the Service", at)
	}
	return err
}

// webhookServer returns the webhook server of the manager. [newManager] passes it to controller-runtime.
func webhookServer(cfg Config, certificates *webhook.Certificates) ctrlwebhook.Server {
	options := ctrlwebhook.Options{
		Host: cfg.Webhook.Host, Port: cfg.Webhook.Port, TLSOpts: cfg.Endpoints.TLS,
		CertDir: cfg.Webhook.CertDir, CertName: cfg.Webhook.CertName, KeyName: cfg.Webhook.KeyName,
	}
	if certificates != nil {
		options.TLSOpts = append(slices.Clone(options.TLSOpts), certificates.Serve)
	}
	if cfg.Webhook.Caller != "" {
		options.TLSOpts = append(slices.Clone(options.TLSOpts), webhook.VerifyCallers(cfg.Endpoints.ClientCA))
	}
	return ctrlwebhook.NewServer(options)
}

// addWebhooks adds the handlers of package webhook to the manager's webhook server, and the renewal of its certificate
// to the manager. [Run] calls it after it has created the manager.
func addWebhooks(mgr manager.Manager, cfg Config, certificates *webhook.Certificates) error {
	if err := addOpenAPI(mgr); err != nil {
		return err
	}
	err := webhook.Register(mgr.GetWebhookServer(), webhook.Options{
		Gates: admissionGates(cfg.Gates), Policy: cfg.Policy, KubernetesVersions: cfg.releases().Versions, VersionOf: webhook.CRDVersions(mgr.GetCache()), Sets: cfg.Policy.Sets(),
		Live: mgr.GetAPIReader(), Caller: cfg.Webhook.Caller,
	})
	if err != nil || certificates == nil {
		return err
	}
	return mgr.Add(certificates)
}

// addOpenAPI serves the OpenAPI document of the runtime hooks, which is public, on the webhook server.
func addOpenAPI(mgr manager.Manager) error {
	handler, err := openapi.Handler(buildinfo.Version())
	if err != nil {
		return fmt.Errorf("describing the hooks: %w", err)
	}
	mgr.GetWebhookServer().Register(openapi.Prefix, handler)
	return nil
}

func admissionGates(gates featuregate.FeatureGate) admission.Gates {
	return admission.Gates{
		ClusterTopology:                gates.Enabled(providerset.GateClusterTopology),
		KubeadmBootstrapFormatIgnition: gates.Enabled(providerset.GateKubeadmBootstrapIgnition),
		MachineTaintPropagation:        gates.Enabled(providerset.GateMachineTaintPropagation),
		RuntimeSDK:                     gates.Enabled(providerset.GateRuntimeSDK),
	}
}
