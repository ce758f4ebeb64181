package template

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/classes"
)

// ClassSummary is a ClusterClass with the Clusters that use it, as "slipway get classes" prints it.
type ClassSummary struct {
	// Namespace is empty for a built-in class that exists in none of the listed namespaces.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Workers are the names of its worker classes.
	Workers []string `json:"workers"`
	// Variables are the names of its variables.
	Variables []string `json:"variables"`
	// Clusters are the Clusters that use the class, as namespace/name.
	Clusters []string `json:"clusters"`
	// Problem is the reason why Clusters cannot use the class yet; empty if they can.
	Problem string `json:"problem,omitempty"`
}

// ListClasses returns the classes of one namespace or of all, and the built-in classes that do not exist there.
// `slipway get classes` calls it.
func ListClasses(ctx context.Context, r client.Reader, namespace string) ([]ClassSummary, error) {
	var there clusterv1.ClusterClassList
	if err := r.List(ctx, &there, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ClusterClasses: %w", err)
	}
	var clusters clusterv1.ClusterList
	if err := r.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	users := map[client.ObjectKey][]string{}
	for _, c := range clusters.Items {
		if ref := c.Spec.Topology.ClassRef; ref.Name != "" {
			key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
			users[key] = append(users[key], c.Namespace+"/"+c.Name)
		}
	}
	rows := []ClassSummary{}
	for i := range there.Items {
		rows = append(rows, summarizeClass(Class{ClusterClass: &there.Items[i]}, users[client.ObjectKeyFromObject(&there.Items[i])]))
	}
	for _, name := range classes.Names() {
		if slices.ContainsFunc(rows, func(r ClassSummary) bool { return r.Name == name }) {
			continue
		}
		c, _, err := builtinClass(name, "")
		if err != nil {
			return nil, err
		}
		rows = append(rows, summarizeClass(c, nil))
	}
	slices.SortFunc(rows, func(a, b ClassSummary) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows, nil
}

func summarizeClass(c Class, users []string) ClassSummary {
	r := ClassSummary{Namespace: c.Namespace, Name: c.Name, Workers: []string{}, Variables: []string{}, Clusters: []string{}}
	slices.Sort(users)
	r.Clusters = append(r.Clusters, users...)
	for _, w := range c.Spec.Workers.MachineDeployments {
		r.Workers = append(r.Workers, "MachineDeployment "+w.Class)
	}
	for _, w := range c.Spec.Workers.MachinePools {
		r.Workers = append(r.Workers, "MachinePool "+w.Class)
	}
	for _, d := range c.Definitions() {
		r.Variables = append(r.Variables, d.Name)
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterClassVariablesReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
		r.Problem = ready.Message
	}
	return r
}
