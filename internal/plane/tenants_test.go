package plane_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// H4: what tenants have of the management cluster is bounded.
func TestTenants(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		must(t, add(scheme))
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}))
	t.Run("a quota counts clusters", func(t *testing.T) { quotaCounts(t, c) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quotaCounts(t *testing.T, c client.Client) {
	must(t, crds.Install(t.Context(), c, crds.Options{}))
	const counted = corev1.ResourceName("count/clusters.cluster.x-k8s.io")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "clusters"}}
	quota.Spec.Hard = corev1.ResourceList{counted: resource.MustParse("2")}
	must(t, c.Create(t.Context(), quota))
	cluster := func(n int) error {
		return c.Create(t.Context(), &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("c%d", n)},
			Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "c",
			}},
		})
	}
	used := func(n string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(quota), quota)
			have, counts := quota.Status.Used[counted] // nothing is counted in the first half minute of a kind
			return counts && have.String() == n, err
		})
		if err != nil {
			t.Fatalf("waiting for %s clusters to be counted, have %v: %v", n, quota.Status.Used, err)
		}
	}
	used("0")
	must(t, cluster(1))
	must(t, cluster(2))
	if err := cluster(3); !apierrors.IsForbidden(err) {
		t.Errorf("the third Cluster of two: %v", err)
	}
	must(t, c.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c1"}}))
	used("1") // by the controller
	must(t, cluster(3))
}
