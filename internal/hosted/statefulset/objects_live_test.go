package statefulset

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// What others have made with the names of a control plane's objects is neither used nor changed nor deleted.
func TestForeignObjects(t *testing.T) {
	h := newHome(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: objectName(plane)}, StringData: map[string]string{"mine": "x"}}
	h.must(h.api.Create(t.Context(), foreign))
	hostile := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "other", Labels: labels(plane), Annotations: map[string]string{nameAnnotation: plane}},
		Spec:       desiredPlane{}.claim(Volume{Size: resource.MustParse("1Gi")}).Spec,
	}
	h.must(h.api.Create(t.Context(), hostile))
	at, err := h.planes.Reserve(t.Context(), plane, clusterv1.APIEndpoint{})
	h.must(err)
	c := config()
	c.Endpoint = net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))
	if err := h.planes.Start(t.Context(), plane, c, files(t)); reasonOf(err) != reasonNameTaken || fault.KindOf(err) != fault.Transient {
		t.Errorf("%v", err)
	}
	h.until("nothing of others counts", func(p backend.ControlPlane) bool { return p.Exists && p.Reserved })
	h.must(h.planes.Remove(t.Context(), plane))
	got := &corev1.Secret{}
	h.must(h.api.Get(t.Context(), client.ObjectKeyFromObject(foreign), got))
	if string(got.Data["mine"]) != "x" || len(got.Data) != 1 || !got.DeletionTimestamp.IsZero() {
		t.Errorf("%+v", got)
	}
	h.must(h.api.Get(t.Context(), client.ObjectKeyFromObject(hostile), hostile))
	if !hostile.DeletionTimestamp.IsZero() {
		t.Error("it was deleted")
	}
}

// What the management cluster refuses is said, and succeeds when its administrator allows it.
func TestRefused(t *testing.T) {
	h := newHome(t)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("0")}},
	}
	h.must(h.api.Create(t.Context(), quota))
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard // as its controller does
	h.must(h.api.Status().Update(t.Context(), quota))
	at, err := h.planes.Reserve(t.Context(), plane, clusterv1.APIEndpoint{})
	h.must(err)
	c, content := config(), files(t)
	c.Endpoint = net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) { // the plugin has a cache
		err := h.planes.Start(ctx, plane, c, content)
		f := fault.As(err)
		return f != nil && f.Kind == fault.Transient && strings.HasPrefix(f.Message, "The management cluster rejects PersistentVolumeClaim home/") && strings.Contains(f.Message, "exceeded quota"), nil
	})
	if left := h.all(); err != nil {
		t.Errorf("%v; there are %v", err, left)
	}
	h.must(h.api.Delete(t.Context(), quota))
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return h.planes.Start(ctx, plane, c, content) == nil, nil
	})
	h.must(err)
}

// The type of the Service may change as long as no endpoint was chosen.
func TestLoadBalancer(t *testing.T) {
	h := newHome(t)
	balanced := func(s *Settings) { s.Service = Service{Type: corev1.ServiceTypeLoadBalancer} }
	h.restart(balanced)
	at, err := h.planes.Reserve(t.Context(), plane, clusterv1.APIEndpoint{})
	h.must(err)
	if at.IsValid() {
		t.Errorf("%v", at)
	}
	h.until("it waits", func(p backend.ControlPlane) bool {
		return strings.HasPrefix(p.EndpointProblem, "Waiting for a load balancer")
	})
	h.restart(func(s *Settings) { s.Service.Host = netip.MustParseAddr("198.51.100.9") })
	h.until("it is reserved again", func(p backend.ControlPlane) bool {
		return p.Reserved && p.EndpointProblem == "" && !p.Endpoint.IsValid()
	})
	at, err = h.planes.Reserve(t.Context(), plane, clusterv1.APIEndpoint{})
	h.must(err)
	if at.Host != "198.51.100.9" || at.Port == 0 {
		t.Errorf("%v", at)
	}
	h.restart(balanced)
	if again, err := h.planes.Reserve(t.Context(), plane, at); err != nil || again != at {
		t.Errorf("an endpoint that was chosen changed to %v, %v", again, err)
	}
}

func TestTerms(t *testing.T) {
	got := (&controlPlanes{settings: Settings{Version: "v1.36.3"}}).Capabilities(policy.Default())
	if got.EmptyStartEffect != "" || !got.InPods || got.OwnEndpoints == nil || !got.OwnEndpoints.SeparateEndpoint {
		t.Errorf("%+v", got)
	}
}
