package machinetemplate

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
)

func TestStatus(t *testing.T) { // IM-10
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	o := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "u"}}
	cl := fake.NewClientBuilder().WithScheme(s).WithObjects(o).WithStatusSubresource(o).WithReturnManagedFields().Build()
	c := &Controller{client: cl, writer: kube.NewWriter(cl, Name), status: statusOf(2, 24<<30, "amd64")}
	version := ""
	for range 3 {
		if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if version != "" && version != o.ResourceVersion {
			t.Error("a status that is right is not written again")
		}
		version = o.ResourceVersion
	}
	if got := o.Status; got.Capacity.Cpu().String() != "2" || got.Capacity.Memory().String() != "24Gi" || got.Capacity.Pods().String() != "110" ||
		got.NodeInfo != (infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "gone"}}); err != nil {
		t.Errorf("a template that is gone is no error; got %v", err)
	}
}

func TestTotalMemory(t *testing.T) {
	if n, err := totalMemory(strings.NewReader("MemFree: 1 kB\nMemTotal:       24688412 kB\n")); err != nil || n != 24688412<<10 {
		t.Errorf("got %d, %v", n, err)
	}
	for _, bad := range []string{"", "MemTotal: x kB\n"} {
		if _, err := totalMemory(strings.NewReader(bad)); err == nil {
			t.Errorf("%q must be an error", bad)
		}
	}
}
