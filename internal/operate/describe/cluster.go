package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonNotFound is the reason when the Cluster does not exist; Gone.
	reasonNotFound = "ClusterNotFound"
	// ReasonNamespace is the reason when the namespace does not exist; Gone. Package operate/create returns it, too.
	ReasonNamespace = "NamespaceNotFound"
)

// GetCluster reads the Cluster for a command that acts on it. If it does not exist, the fault lists the existing ones.
func GetCluster(ctx context.Context, r client.Reader, key client.ObjectKey) (*clusterv1.Cluster, error) {
	found := &clusterv1.Cluster{}
	err := r.Get(ctx, key, found)
	if err == nil {
		return found, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading cluster %s: %w", key, err)
	}
	var list clusterv1.ClusterList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	return nil, fault.New(fault.Gone, reasonNotFound, "%s", notFoundMessage(key, list.Items)).From(err)
}

// notFoundMessage returns an error message that lists the existing clusters.
func notFoundMessage(key client.ObjectKey, clusters []clusterv1.Cluster) string {
	var here, same, elsewhere []string
	for _, c := range clusters {
		switch {
		case c.Namespace == key.Namespace:
			here = append(here, c.Name)
		case c.Name == key.Name:
			same = append(same, c.Namespace)
		default:
			elsewhere = append(elsewhere, c.Namespace+"/"+c.Name)
		}
	}
	for _, names := range [][]string{here, same, elsewhere} {
		slices.Sort(names)
	}
	message := fmt.Sprintf("there is no cluster %q in namespace %q", key.Name, key.Namespace)
	switch {
	case len(same) > 0:
		return message + "; there is one in namespace " + enumerate(same) + ": add -n " + same[0]
	case len(here) > 0:
		return message + "; there are: " + enumerate(here)
	case len(elsewhere) > 0:
		return message + "; in other namespaces there are: " + enumerate(elsewhere)
	}
	return message + ", nor any other: `slipway create cluster " + key.Name + "` creates it"
}

// enumerate joins at most ten names.
func enumerate(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + fmt.Sprintf(" and %d more", len(names)-10)
	}
	return strings.Join(names, ", ")
}
