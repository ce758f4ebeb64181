package controlplane_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// H4: what tenants have of the management cluster is bounded and shared.
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
	t.Run("a user who floods is not everybody's problem", func(t *testing.T) { floodIsBounded(t, server, c) })
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

// floodIsBounded lets one user send as fast as 200 connections do, and looks at what another and the manager get.
func floodIsBounded(t *testing.T, server *apiserver.Server, c client.Client) {
	for _, user := range []string{"flooder", "quiet", controlplane.ManagerUser} {
		must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprintf("%x", user)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
	}
	flooder, quiet, manager := played(t, server, "flooder"), played(t, server, "quiet"), played(t, server, controlplane.ManagerUser)
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var sent atomic.Int64
	for range 200 {
		flood.Go(func() {
			for ctx.Err() == nil {
				if _, _, err := flooder(ctx); err == nil {
					sent.Add(1)
				}
			}
		})
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return sent.Load() > 400, nil
	})
	must(t, err)
	levels := map[string]bool{}
	for range 20 {
		code, level, err := quiet(t.Context())
		must(t, err)
		if code != http.StatusOK {
			t.Errorf("a request beside the flood is answered %d", code)
		}
		levels[level] = true
	}
	code, exempt, err := manager(t.Context())
	if err != nil || code != http.StatusOK || exempt == "" || levels[exempt] || levels[""] || len(levels) != 1 {
		t.Errorf("the manager's request: %d, %v, priority level %q; that of tenants: %v", code, err, exempt, levels)
	}
	stop()
	flood.Wait()
}

// played returns how a user lists ConfigMaps: the status and the priority level of the answer.
func played(t *testing.T, server *apiserver.Server, user string) func(context.Context) (code int, level string, err error) {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := rest.HTTPClientFor(config)
	must(t, err)
	return func(ctx context.Context) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/team-a/configmaps", nil)
		if err != nil {
			return 0, "", err
		}
		response, err := c.Do(request)
		if err != nil {
			return 0, "", err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode, response.Header.Get("X-Kubernetes-PF-PriorityLevel-UID"), response.Body.Close()
	}
}
