package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
)

// GetClustersCommand returns the get clusters command, for package cli. [lists] implements its flags, --watch and the
// output.
func GetClustersCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "List clusters",
		Long: `List the clusters with the version that runs and the desired version, the ready Machines, and the
cause of a problem.

STATUS is Problem if a user has to act or nothing changes, Changing during a creation, an upgrade, a
rollout or a deletion, Paused, or Healthy. A change whose cause has lasted for 15 minutes is a
problem. REASON names the object that causes it, and SINCE is the time since it began.`,
		Example: `  slipway get clusters
  slipway get clusters -A --problems
  slipway get clusters -A --sort-by trouble --watch
  slipway get clusters -l team=a -o json`,
		Args: cobra.NoArgs,
	}
	v := lists[fleet.Cluster]{
		kind: "clusters", of: fleet.Cluster{}.Ref().GroupKind(), rows: clusterRows, compare: fleet.CompareClusters, byTrouble: fleet.CompareClustersByTrouble,
		attributes: func(c fleet.Cluster) attributes { return attributes{c.Namespace, c.Name, c.Labels, c.Health} },
		header:     []string{"NAME", "CLASS", "VERSION", "CONTROL PLANE", "WORKERS", "STATUS"},
		wide:       []string{"PROVIDER", "PHASE", "AVAILABLE", "UP TO DATE", "AGE"},
		cells:      clusterCells, hasRemedies: true,
		withFlags: func(c *fleet.Cluster, flags string) { c.WithFlags(flags) },
		empty:     printNoClusters,
	}
	v.addTo(e, cmd)
	return cmd
}

// clusterRows computes the rows of the clusters that have changed, or whose health depends on the time. [lists] calls
// the function that it returns before each output.
func clusterRows(s *mirror.Store) func([]fleet.Key, time.Time) []fleet.Cluster {
	board := fleet.NewBoard(s)
	return func(changed []fleet.Key, now time.Time) []fleet.Cluster {
		for _, key := range changed {
			board.Touch(key)
		}
		board.Refresh(now)
		return board.Clusters()
	}
}

// clusterCells returns the cells of a Cluster. Their order is the order of the columns in GetClustersCommand.
func clusterCells(c fleet.Cluster, t cellTimes) listCells {
	return listCells{
		cells:  []string{c.Name, c.Class, c.VersionText(), replicaText(c.ControlPlane), replicaText(c.Workers), string(c.Health)},
		since:  t.since(c.Since),
		wide:   []string{c.Infrastructure, c.Phase, c.Available, upToDateText(c.ControlPlane, c.Workers), t.age(c.Created)},
		reason: c.Reason, whole: c.WholeReason(), remedy: remedyText(c.Cause),
	}
}

// replicaText returns the ready and desired Machines, and the surplus of a rollout.
func replicaText(r *fleet.Replicas) string {
	switch {
	case r == nil:
		return "-"
	case r.Current > r.Desired:
		return fmt.Sprintf("%d/%d +%d", r.Ready, r.Desired, r.Current-r.Desired)
	}
	return fmt.Sprintf("%d/%d", r.Ready, r.Desired)
}

// upToDateText returns the up-to-date and desired Machines of the whole cluster.
func upToDateText(counters ...*fleet.Replicas) string {
	var upToDate, desired int32
	counted := false
	for _, r := range counters {
		if r != nil {
			upToDate, desired, counted = upToDate+r.UpToDate, desired+r.Desired, true
		}
	}
	if !counted {
		return "-"
	}
	return fmt.Sprintf("%d/%d", upToDate, desired)
}

// isAbsent reports whether the namespace does not exist. It returns false if the user may not read it.
func isAbsent(ctx context.Context, r client.Reader, namespace string) bool {
	return apierrors.IsNotFound(r.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
}

// printNoClusters prints the text for an empty list without other filters than the namespace.
func printNoClusters(w io.Writer, namespace string) error {
	if namespace == "" {
		_, err := fmt.Fprintln(w, "There are no clusters; \"slipway create cluster NAME\" creates one.")
		return err
	}
	_, err := fmt.Fprintf(w, "There are no clusters in namespace %s; -A lists the clusters in all namespaces.\n", namespace)
	return err
}

// noNamespace returns an error if the namespace does not exist. [lists] calls it if there are no rows, and before
// --watch.
func noNamespace(ctx context.Context, c *management.Connection, namespace, kind string) error {
	if namespace == "" || !isAbsent(ctx, c.Client, namespace) {
		return nil
	}
	return fault.New(fault.Gone, "NoNamespace", "there is no namespace %q; -A lists the %s of all namespaces", namespace, kind)
}
