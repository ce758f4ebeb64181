package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// clusterRow is a cluster in structured output.
type clusterRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is empty for a cluster without a class.
	Class   string `json:"class,omitempty"`
	Version string `json:"version,omitempty"`
	Phase   string `json:"phase"`
	// ControlPlane counts Machines; it is nil for a control plane without Machines.
	ControlPlane *replicaCount `json:"controlPlane,omitempty"`
	Workers      *replicaCount `json:"workers,omitempty"`
	// Available is the status of the Available condition.
	Available string    `json:"available"`
	Message   string    `json:"message,omitempty"`
	Paused    bool      `json:"paused,omitempty"`
	Created   time.Time `json:"created"`
}

type replicaCount struct {
	Available int32 `json:"available"`
	Desired   int32 `json:"desired"`
}

func (c *replicaCount) String() string {
	if c == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", c.Available, c.Desired)
}

// GetClustersCommand returns the get clusters command.
func GetClustersCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "List clusters",
		Example: "  slipway get clusters\n  slipway get clusters -A -o json",
		Args:    cobra.NoArgs,
	}
	connection := management.AddFlags(cmd.Flags())
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "list the clusters in all namespaces")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		var options []client.ListOption
		if !*all {
			options = append(options, client.InNamespace(c.Namespace))
		}
		var list clusterv1.ClusterList
		if err := c.Client.List(ctx, &list, options...); err != nil {
			return err
		}
		rows := clusterRows(list.Items)
		return format.Print(e.Out, rows, func(w io.Writer) error {
			if len(rows) == 0 && !*all && isAbsent(ctx, c.Client, c.Namespace) {
				return fault.New(fault.Gone, "NoNamespace", "there is no namespace %q; -A lists the clusters of all namespaces", c.Namespace)
			}
			if len(rows) == 0 {
				return printNoClusters(e.Err, c.Namespace, *all)
			}
			return printClusters(w, rows, e.Now(), *all)
		})
	})
	return cmd
}

// isAbsent reports whether the namespace does not exist. It returns false if the user may not read it.
func isAbsent(ctx context.Context, r client.Reader, namespace string) bool {
	return apierrors.IsNotFound(r.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}))
}

func printNoClusters(w io.Writer, namespace string, all bool) error {
	if all {
		_, err := fmt.Fprintln(w, "There are no clusters; \"slipway create cluster NAME\" creates one.")
		return err
	}
	_, err := fmt.Fprintf(w, "There are no clusters in namespace %s; -A lists the clusters in all namespaces.\n", namespace)
	return err
}

func clusterRows(clusters []clusterv1.Cluster) []clusterRow {
	rows := []clusterRow{}
	for i := range clusters {
		rows = append(rows, newClusterRow(&clusters[i]))
	}
	slices.SortFunc(rows, func(a, b clusterRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func newClusterRow(c *clusterv1.Cluster) clusterRow {
	r := clusterRow{
		Namespace: c.Namespace, Name: c.Name, Class: c.Spec.Topology.ClassRef.Name, Version: c.Spec.Topology.Version,
		Phase: c.Status.Phase, Available: "Unknown", Created: c.CreationTimestamp.Time,
		Paused: c.Spec.Paused != nil && *c.Spec.Paused,
	}
	if p := c.Status.ControlPlane; p != nil {
		if r.Version == "" {
			r.Version = joinVersions(p.Versions)
		}
		if p.DesiredReplicas != nil {
			r.ControlPlane = newReplicaCount(p.AvailableReplicas, p.DesiredReplicas)
		}
	}
	if w := c.Status.Workers; w != nil && w.DesiredReplicas != nil {
		r.Workers = newReplicaCount(w.AvailableReplicas, w.DesiredReplicas)
	}
	if available := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterAvailableCondition); available != nil {
		r.Available, r.Message = string(available.Status), available.Message
	}
	return r
}

// joinVersions returns the versions of the control plane Machines, which differ during an upgrade.
func joinVersions(found []clusterv1.StatusVersion) string {
	var out []string
	for _, v := range found {
		out = append(out, v.Version)
	}
	return strings.Join(out, ", ")
}

func newReplicaCount(available, desired *int32) *replicaCount {
	c := &replicaCount{Desired: *desired}
	if available != nil {
		c.Available = *available
	}
	return c
}

func printClusters(w io.Writer, rows []clusterRow, now time.Time, all bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	space := func(s string) string {
		if all {
			return s + "\t"
		}
		return ""
	}
	_, _ = fmt.Fprintln(t, space("NAMESPACE")+"NAME\tCLASS\tVERSION\tPHASE\tAVAILABLE\tCONTROL PLANE\tWORKERS\tAGE")
	for _, r := range rows {
		phase := cmp.Or(r.Phase, "-")
		if r.Paused {
			phase += " (paused)"
		}
		_, _ = fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", space(r.Namespace), r.Name, cmp.Or(r.Class, "-"), cmp.Or(r.Version, "-"),
			phase, r.Available, r.ControlPlane, r.Workers, duration.HumanDuration(now.Sub(r.Created)))
	}
	return t.Flush()
}
