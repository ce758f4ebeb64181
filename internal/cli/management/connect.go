package management

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	planev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// Connection is a connection of a command to the management cluster, from [Flags.Connect]. Most commands get one
// through [Flags.RunE].
type Connection struct {
	// Client reads and writes without a cache.
	Client client.WithWatch
	// Config is the configuration of the client, for calls that the client does not support.
	Config *rest.Config
	// Namespace is the namespace from the flags or the context.
	Namespace string
	// DataDir is the data directory of the management cluster. It is empty if the cluster is not known to be one of
	// `slipway up`.
	DataDir string
	// RepeatFlags contains the flags that select the management cluster, for printed commands.
	RepeatFlags string
	// UpCommand starts the management cluster, for printed commands; empty without a data directory.
	UpCommand string

	host string
	now  func() time.Time
	// overlooked is true if the kubeconfig of the data directory is used although KUBECONFIG is set to another one.
	overlooked bool
}

// Connect creates the client. It sends no request.
func (f *Flags) Connect(e term.Env) (*Connection, error) {
	log.SetLogger(logr.Discard()) // log lines of client-go and controller-runtime are not useful to CLI users
	found, err := f.Find(e)
	if err != nil {
		return nil, err
	}
	loaded := f.load(e, found)
	if err := f.checkContext(loaded); err != nil {
		return nil, err
	}
	cfg, err := loaded.ClientConfig()
	if err != nil {
		return nil, f.kubeconfigError(found, err)
	}
	if found.Server != "" && f.Context == "" && cfg.Host != found.Server {
		return nil, fault.New(fault.Invalid, ReasonKubeconfig,
			"the manager was started with the kubeconfig %s for the API server %s, but its context %q now selects %s: correct it, or select another kubeconfig with --kubeconfig", found.Path, found.Server, found.Context, cfg.Host)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, f.kubeconfigError(found, err)
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, f.kubeconfigError(found, err)
	}
	return &Connection{Client: c, Config: cfg, Namespace: namespace, DataDir: found.DataDir, RepeatFlags: f.RepeatFlags(), UpCommand: found.UpCommand, host: cfg.Host, now: e.Now, overlooked: found.Overlooked}, nil
}

// RunE returns a function for the RunE field of a command that connects to the management cluster. It adds remedies to
// errors of the API.
func (f *Flags) RunE(e term.Env, run func(ctx context.Context, c *Connection, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := f.Connect(e)
		if err != nil {
			return err
		}
		return c.Explain(run(cmd.Context(), c, args))
	}
}

// Key returns the key of an object in the selected namespace.
func (c *Connection) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: name}
}

// Cluster reads a Cluster. If it does not exist, the error lists the existing ones.
func (c *Connection) Cluster(ctx context.Context, name string) (*clusterv1.Cluster, error) {
	return describe.GetCluster(ctx, c.Client, c.Key(name))
}

// Operation returns an operation in the management cluster that prints its progress.
func (c *Connection) Operation(e term.Env) progress.Operation {
	return progress.Operation{Client: c.Client, Now: e.Now, Progress: func(text string) { _, _ = fmt.Fprintln(e.Err, text) }}
}

// WarnIgnoredKubeconfig prints, before a write, that KUBECONFIG contains another management cluster than the one in
// use.
func (c *Connection) WarnIgnoredKubeconfig(e term.Env) {
	if c.overlooked {
		_, _ = fmt.Fprintf(e.Err, "Using the management cluster of %s; KUBECONFIG selects another one: use --kubeconfig to select it.\n", c.DataDir)
	}
}

func newClient(cfg *rest.Config) (client.WithWatch, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	// The API server limits requests instead of the client. The client-side limiter would also fail a request that it
	// cannot send before the deadline of the command, with an unclear message.
	cfg.QPS = -1
	cfg.UserAgent = "slipway-cli"
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme})
}

// Scheme returns the scheme with the kinds that commands use as Go types. Commands that create a client of their own
// call it, too.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, eventsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, addonsv1.AddToScheme,
		runtimev1.AddToScheme, controlplanev1.AddToScheme, localv1.AddToScheme, planev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// checkContext returns an error with the existing contexts if the selected one does not exist.
func (f *Flags) checkContext(loaded clientcmd.ClientConfig) error {
	raw, err := loaded.RawConfig()
	if err != nil || f.Context == "" || raw.Contexts[f.Context] != nil {
		return nil // the error occurs again, and is reported, when the kubeconfig is used
	}
	names := slices.Sorted(maps.Keys(raw.Contexts))
	return fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig has no context %q; it has: %s", f.Context, strings.Join(names, ", "))
}

func (f *Flags) kubeconfigError(found SelectedKubeconfig, err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return fault.New(fault.Invalid, ReasonKubeconfig, "%s selects no cluster, or is empty: select another one with --kubeconfig", strings.TrimSpace("the kubeconfig "+found.Path)).From(err)
	}
	if found.Path == "" {
		return fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig cannot be used: %v; select one with --kubeconfig", err).From(err)
	}
	return fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig %s cannot be used: %v", found.Path, err).From(err)
}

// failedGroups lists the API versions that could not be discovered.
func failedGroups(failed apiutil.ErrResourceDiscoveryFailed) string {
	var out []string
	for version := range failed {
		out = append(out, version.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Explain adds the remedy to an error of the API if the error itself is not clear. Commands pass the error of their
// work to it, and print its result.
func (c *Connection) Explain(err error) error {
	var noKind *meta.NoKindMatchError
	var discovery *apiutil.ErrResourceDiscoveryFailed
	here := readPresence(c.DataDir)
	problem, hasProblem := c.processProblem()
	switch known := fault.As(err); {
	case known != nil && known.Kind == fault.Gone && c.overlooked:
		return fault.New(known.Kind, known.Reason, "%s (in the management cluster of %s; KUBECONFIG selects another one: use --kubeconfig to select it)", known.Message, c.DataDir).From(err)
	case err == nil, known != nil, errors.Is(err, context.Canceled):
		return err
	case (errors.As(err, &discovery) || errors.As(err, &noKind)) && here.isStarting:
		return fault.New(fault.Unreachable, reasonNotReady, "%s, and does not serve all of Cluster API before it is ready: try again when \"slipway status\" shows that it runs", here.text).From(err)
	case errors.As(err, &discovery):
		return fault.New(fault.Invalid, reasonNotInstalled,
			"the cluster at %s does not serve all of Cluster API (%s): run \"slipway init\" or \"slipway manager\" there first, or select another cluster with --kubeconfig", c.host, failedGroups(*discovery)).From(err)
	case errors.As(err, &noKind):
		return fault.New(fault.Invalid, reasonNotInstalled,
			"the cluster at %s is not a management cluster: it does not have the kind %s; select another one with --kubeconfig or --kubeconfig-context", c.host, noKind.GroupKind).From(err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook") && hasProblem:
		return fault.New(fault.Unreachable, "WebhookNotAnswering", "%s", problem.text()).From(err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook") && (here.text != "" || isSlow(err)):
		return fault.New(fault.Unreachable, "WebhookNotAnswering", "%s", managerProblem(here, err)).From(err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return fault.New(fault.Unreachable, "WebhookNotRunning",
			"a webhook of the management cluster at %s does not respond, so the objects that it validates cannot be changed: start the manager (\"slipway up\", \"slipway manager\") or the provider of the webhook, or wait until it is ready (%v)", c.host, err).From(err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is terminating"):
		return fault.New(fault.Invalid, "BeingDeleted", "the management cluster at %s rejected the request: %v; wait for the end of the deletion, or check which finalizers block it", c.host, err).From(err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fault.New(fault.Invalid, "NotAllowed", "the management cluster at %s rejected the request: %v; use a kubeconfig with the required permissions", c.host, err).From(err)
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err):
		return fault.New(fault.Transient, "ManagementClusterBusy", "%s", c.busyText(err)).From(err)
	case fault.KindOf(err) == fault.Unreachable && hasProblem && problem.isDown:
		return fault.New(fault.Unreachable, ReasonNotRunning, "%s", problem.text()).From(err)
	case fault.KindOf(err) == fault.Unreachable && here.text != "":
		return fault.New(fault.Unreachable, reasonNotReady,
			"the management cluster in %s runs but did not respond at %s: this host is busy, or it hangs; try again, and see \"slipway status\" (%v)", c.DataDir, c.host, err).From(err)
	case fault.KindOf(err) == fault.Unreachable && c.DataDir != "":
		return fault.New(fault.Unreachable, ReasonNotRunning,
			"the management cluster in %s does not respond at %s; if it is not running, \"%s\" starts it", c.DataDir, c.host, c.UpCommand).From(err)
	case fault.KindOf(err) == fault.Unreachable:
		return fault.New(fault.Unreachable, ReasonNotRunning, "the management cluster at %s does not respond", c.host).From(err)
	}
	return err
}

// busyText is the message for a request that the API server has received and did not complete, because it or its host
// is busy.
func (c *Connection) busyText(err error) string {
	if c.DataDir != "" {
		return fmt.Sprintf("the management cluster in %s is busy and did not complete the request: wait until this host has less to do, then run the command again; \"slipway status\" shows its processes (%v)", c.DataDir, err)
	}
	return fmt.Sprintf("the API server of the management cluster at %s is busy and did not complete the request: wait a moment and run the command again; if it stays busy, reduce the load of its host (%v)", c.host, err)
}

// WithWarnings creates a client with a warning handler. "move" calls it for both management clusters, because it shows
// warnings of the API server.
func WithWarnings(of *rest.Config, warnings rest.WarningHandlerWithContext) (client.Client, error) {
	cfg := rest.CopyConfig(of)
	cfg.WarningHandlerWithContext = warnings
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig cannot be used: %v", err).From(err)
	}
	return c, nil
}
