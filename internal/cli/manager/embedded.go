package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/managerproc"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/workload"
)

// loopback is the address of the webhooks and the diagnostics. Only processes of this host call the manager of `slipway
// up`.
const loopback = "127.0.0.1"

// Prepare prepares a management cluster for the manager of these providers, with an administrator's rights: `slipway
// up` calls it after the API server has started, before it starts the manager's process. Package cli passes it to
// package up, which cannot import this package.
func Prepare(ctx context.Context, root *rest.Config, sets []providerset.Set) error {
	if err := manager.Install(ctx, root, rbac.Rights{Sets: sets, Separate: true}); err != nil {
		return fmt.Errorf("preparing the management cluster: %w", err)
	}
	return nil
}

// EmbeddedCommand returns the hidden command that `slipway up` starts as a child process: the manager. Package cli adds
// the command. The parent sends its configuration on standard input ([up.Instructions]).
func EmbeddedCommand(e term.Env) *cobra.Command {
	return &cobra.Command{
		Use: up.ManagerVerb, Short: "Manager process of \"slipway up\"", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var i up.Instructions
			process, err := managerproc.Attach(e.In, &i, e.Now)
			if err != nil {
				return err
			}
			err = embedded(cmd.Context(), e, i, process)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return process.Ended(err)
		},
	}
}

// embedded runs the controllers for the management cluster of `slipway up`, like the manager command, with webhooks and
// diagnostics on loopback.
func embedded(ctx context.Context, e term.Env, i up.Instructions, process *managerproc.Manager) error {
	cfg, err := embeddedConfig(e, i, process)
	if err != nil {
		return err
	}
	ctrl.SetLogger(cfg.Log)
	heap.Collect(heap.Manager())
	return manager.Run(ctx, cfg)
}

// embeddedConfig returns the configuration of the manager of `slipway up`, with identities and certificates from the
// data directory.
func embeddedConfig(e term.Env, i up.Instructions, process *managerproc.Manager) (manager.Config, error) {
	access, err := unthrottledConfig(i.Dir.ManagerKubeconfig())
	if err != nil {
		return manager.Config{}, fmt.Errorf("reading the kubeconfig of the manager: %w", err)
	}
	webhooks, diagnostics, err := freePorts(access.Host)
	if err != nil {
		return manager.Config{}, err
	}
	served := net.JoinHostPort(loopback, strconv.Itoa(diagnostics))
	cert, key := i.Dir.DiagnosticsFiles()
	var shown manager.Extensions
	shown.CertFile, shown.KeyFile = i.Dir.ExtensionsFiles()
	gates, err := embeddedGates(i.FeatureGates)
	if err != nil {
		return manager.Config{}, err
	}
	identities := map[providerset.Name]*rest.Config{}
	for _, set := range i.Policy.Sets() {
		if len(set.Controllers) == 0 {
			continue
		}
		if identities[set.Name], err = unthrottledConfig(i.Dir.ProviderKubeconfig(string(set.Name))); err != nil {
			return manager.Config{}, fmt.Errorf("reading the kubeconfig of provider %s: %w", set.Name, err)
		}
	}
	level := &slog.LevelVar{}
	return manager.Config{
		Gates: gates, REST: access, Identities: identities, Policy: i.Policy, Work: workReporter{process}, Crashes: workReporter{process},
		Ready: func() { process.Ready("https://" + served) },
		Log:   logger(e, false, level),
		// The certificate authority of the server also issues the client certificates.
		Endpoints:  manager.Endpoints{Health: "0", Diagnostics: served, CertFile: cert, KeyFile: key, ClientCA: access.CAData, Verbosity: level},
		Extensions: shown,
		Webhook:    manager.Webhook{Local: true, Host: loopback, Port: webhooks, Caller: controlplane.WebhookUser},
		Host:       manager.Host{DataDir: string(i.Dir), Instance: i.Instance, Executable: i.Executable},
	}, nil
}

// unthrottledConfig returns a client configuration without client-side limits: the server is local and limits requests
// itself.
func unthrottledConfig(kubeconfig string) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c.QPS = -1
	return c, nil
}

// workReporter reports the current reconciliations to the parent process.
type workReporter struct{ process *managerproc.Manager }

// Begin implements reconciler.WorkTracker.
func (w workReporter) Begin(kind schema.GroupVersionKind, o client.Object) (done func(), aside time.Duration) {
	version, name := kind.ToAPIVersionAndKind()
	return w.process.Begin(managerproc.Subject{
		APIVersion: version, Kind: name, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()),
	})
}

// Decoding implements workload.Crashes.
func (w workReporter) Decoding(cluster client.ObjectKey) workload.DecodingMemory {
	return w.process.Decode(subjectOf(cluster))
}

// SuspendedUntil implements workload.Crashes.
func (w workReporter) SuspendedUntil(cluster client.ObjectKey) time.Time {
	return w.process.SuspendedUntil(subjectOf(cluster))
}

func subjectOf(cluster client.ObjectKey) managerproc.Subject {
	return managerproc.Subject{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: cluster.Namespace, Name: cluster.Name}
}

// embeddedGates returns the feature gates of `slipway up`. Cluster classes and extensions, which new users try first,
// are enabled by default (docs/divergences.md).
func embeddedGates(changes string) (featuregate.FeatureGate, error) {
	gates, err := providerset.NewGates()
	if err != nil {
		return nil, err
	}
	if err := gates.SetFromMap(map[string]bool{string(providerset.GateRuntimeSDK): true, string(providerset.GateClusterTopology): true}); err != nil {
		return nil, err
	}
	if err := gates.Set(changes); err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFeatureGates", "--feature-gates=%s: %v", changes, err)
	}
	return gates, nil
}

// freePorts returns ports for webhooks and diagnostics. It prefers the ports after the API server's, so that they are
// the same at the next start and the configuration need not be rewritten.
func freePorts(server string) (webhooks, diagnostics int, err error) {
	_, text, err := net.SplitHostPort(strings.TrimPrefix(server, "https://"))
	if err != nil {
		return 0, 0, fmt.Errorf("address of the management cluster: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, 0, fmt.Errorf("address of the management cluster: %w", err)
	}
	first, err := listen(port + 1)
	if err != nil {
		return 0, 0, err
	}
	defer first.Close() //nolint:errcheck // it was never used
	second, err := listen(port + 2)
	if err != nil {
		return 0, 0, err
	}
	return first.Addr().(*net.TCPAddr).Port, second.Addr().(*net.TCPAddr).Port, second.Close()
}

// listen listens on a port of loopback, or on any free one if it is in use.
func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err == nil {
		return listener, nil
	}
	if listener, err = net.Listen("tcp", net.JoinHostPort(loopback, "0")); err != nil {
		return nil, fmt.Errorf("no free port on %s: %w", loopback, err)
	}
	return listener, nil
}
