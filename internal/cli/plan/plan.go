package plan

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/plan"
	"github.com/slipwayhq/slipway/internal/plan/memory"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Exit codes of "slipway plan" other than 0, which means that nothing changes. Scripts depend on them.
const (
	exitRefused = 1 // the API would reject at least a part of the change
	exitChanges = 2 // something changes, or may change
)

// exitCode is an error with the exit code of a printed result. Package cli exits with it, and prints no message for
// such an error.
type exitCode int

// Error implements error.
func (e exitCode) Error() string { return "the plan has changes" }

// ExitCode returns the exit code.
func (e exitCode) ExitCode() int { return int(e) }

// planFlags holds the flag values of the plan command.
type planFlags struct {
	files, deletes []string
	offline        string
	all, call      bool
	extensions     manager.Extensions
}

// Command returns the plan command, for package cli.
func Command(e term.Env) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Preview the effects of a change",
		Long: `Preview the effects of "kubectl apply" on a management cluster: the objects that are created,
changed field by field or deleted, the Machines that are replaced, the order and number of steps,
and the affected clusters. The real controllers run on a copy of the management cluster in memory,
where providers behave as their contract promises. Nothing is written anywhere. Changes that the API
would reject are shown with the error of the API.

Lifecycle hooks are not called; the plan shows when they would be. With --call-extensions, the
command itself calls the Runtime Extensions that patch or validate templates, define variables or
plan upgrades. Without the flag, the plan lists the extensions that were not called and the effects
that are unknown without their responses.

The exit code is 0 if nothing changes; 2 if something changes, or might change because a response is
missing; and 1 after an error or if part of the change is rejected.`,
		Example: `  slipway plan -f cluster.yaml
  slipway plan -f changes/ -o json
  slipway kubectl get machinedeployment demo-md-0 -o yaml | sed 's/replicas: 3/replicas: 5/' | slipway plan -f -
  slipway plan --delete cluster.yaml
  slipway plan -f class.yaml --call-extensions
  slipway plan -f cluster.yaml --offline copy/`,
		Args: cobra.NoArgs,
	}
	connection := management.AddFlags(cmd.Flags())
	f.add(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p, err := f.plan(cmd.Context(), e, connection)
		if err != nil {
			return err
		}
		if err := format.Print(e.Out, p, func(w io.Writer) error { return render(w, p, f.all) }); err != nil {
			return err
		}
		switch {
		case len(p.Refused) > 0:
			return exitCode(exitRefused)
		case !p.IsEmpty() || p.IsUncertain():
			return exitCode(exitChanges)
		}
		return nil
	}
	return cmd
}

func (f *planFlags) add(set *pflag.FlagSet) {
	set.StringSliceVarP(&f.files, "filename", "f", nil, "files or directories with the objects to apply; - reads standard input")
	set.StringSliceVar(&f.deletes, "delete", nil, "files or directories with the objects to delete")
	set.StringVar(&f.offline, "offline", "", "directory with a copy of the management cluster: its objects with their status, and the CRDs of its providers")
	set.BoolVar(&f.call, "call-extensions", false, "call the Runtime Extensions that patch and validate templates, define variables and plan upgrades")
	set.StringVar(&f.extensions.CertFile, "runtime-extension-client-cert-file", "", "client certificate file for Runtime Extensions")
	set.StringVar(&f.extensions.KeyFile, "runtime-extension-client-key-file", "", "private key file of the client certificate for Runtime Extensions")
	set.BoolVar(&f.all, "all", false, "show every cluster and every name instead of shortening long lists")
}

// plan reads the input and runs the controllers on a copy of the management cluster in memory.
func (f *planFlags) plan(ctx context.Context, e term.Env, connection *management.Flags) (*plan.Plan, error) {
	if len(f.files)+len(f.deletes) == 0 {
		return nil, fault.New(fault.Invalid, "Usage", "nothing is proposed: name files with -f or --delete")
	}
	var change plan.Change
	var err error
	if change.Apply, err = plan.ReadFiles(f.files, e.In); err != nil {
		return nil, err
	}
	if change.Delete, err = plan.ReadFiles(f.deletes, e.In); err != nil {
		return nil, err
	}
	snapshot, namespace, err := f.snapshot(ctx, e, connection, change)
	if err != nil {
		return nil, err
	}
	if err := plan.PrepareObjects(&snapshot, &change, namespace); err != nil {
		return nil, err
	}
	o, err := simulationOptions(e.Now())
	if err != nil {
		return nil, err
	}
	if f.call {
		if o.Registry, err = manager.PlannedExtensions(f.extensions); err != nil {
			return nil, err
		}
	}
	defer heap.TuneForStartup(heap.PlanMemory)()
	plan, _, err := plan.Run(ctx, o, snapshot, change)
	return plan, err
}

// simulationOptions returns options with the controllers and the admission of this build.
func simulationOptions(now time.Time) (plan.Options, error) {
	scheme, err := manager.NewScheme()
	if err != nil {
		return plan.Options{}, err
	}
	cfg, err := managerConfig()
	if err != nil {
		return plan.Options{}, err
	}
	gates, allowed, err := manager.PlannedAdmission(cfg)
	if err != nil {
		return plan.Options{}, err
	}
	return plan.Options{
		Scheme: scheme, Now: now, Inventory: ssh.PlannedInventory,
		Admission: func(live client.Reader) memory.Admission {
			return webhook.NewInProcessAdmission(webhook.Options{Gates: gates, Policy: allowed, Live: live})
		},
		Controllers: func(s reconciler.Setup, w workload.Workloads, extensions hook.Client) error {
			return manager.AddPlanned(s, w, extensions, cfg)
		},
	}, nil
}

// managerConfig returns the configuration of a manager with all features that a plan supports. A disabled feature has
// no objects, so enabling it has no effect.
func managerConfig() (manager.Config, error) {
	gates, err := providerset.NewGates()
	if err != nil {
		return manager.Config{}, err
	}
	return manager.Config{Gates: gates}, gates.SetFromMap(map[string]bool{string(providerset.GateClusterTopology): true, string(providerset.GateRuntimeSDK): true, string(providerset.GateInPlaceUpdates): true})
}

// snapshot returns the existing objects, and the namespace for proposed objects without one.
func (f *planFlags) snapshot(ctx context.Context, e term.Env, connection *management.Flags, change plan.Change) (plan.Snapshot, string, error) {
	if f.offline != "" {
		own, err := crds.All()
		if err != nil {
			return plan.Snapshot{}, "", err
		}
		s, err := plan.ReadFolder(f.offline, own)
		namespace := connection.Namespace
		if namespace == "" {
			namespace = "default"
		}
		return s, namespace, err
	}
	c, err := connection.Connect(e)
	if err != nil {
		return plan.Snapshot{}, "", err
	}
	s, err := plan.ReadCluster(ctx, c.Client, namespaces(c.Namespace, change))
	return s, c.Namespace, c.Explain(err)
}

// namespaces returns the namespaces of the proposed objects, for users who may not read all namespaces.
func namespaces(otherwise string, change plan.Change) []string {
	out := []string{otherwise}
	for _, list := range [][]*unstructured.Unstructured{change.Apply, change.Delete} {
		for _, u := range list {
			if ns := u.GetNamespace(); ns != "" && !slices.Contains(out, ns) {
				out = append(out, ns)
			}
		}
	}
	return out
}
