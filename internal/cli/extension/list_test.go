package extension

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// RT-01, RT-06: what is known of each extension, and why one is not discovered.
func TestList(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mine := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "mine", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)), Annotations: map[string]string{extensiontools.RunAnnotation: "true"}}}
	mine.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	mine.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True", Message: "x"}}
	mine.Status.Handlers = []runtimev1.ExtensionHandler{{
		Name: "check.mine", TimeoutSeconds: 10, FailurePolicy: "Fail",
		RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
	}}
	down := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "prod", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	down.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "team", Name: "svc"}
	down.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "False", Message: "nothing listens"}}
	young := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "young", CreationTimestamp: metav1.NewTime(now)}}
	rows := listRows([]runtimev1.ExtensionConfig{mine, down, young})
	if d := cmp.Diff([]handlerRow{{"check.mine", "BeforeClusterCreate", "hooks.runtime.cluster.x-k8s.io/v1alpha1", 10, "Fail"}}, rows[0].Handlers); d != "" || !rows[0].Run {
		t.Errorf("%s%+v", d, rows[0])
	}
	var out strings.Builder
	if err := printExtensions(&out, now, rows); err != nil {
		t.Fatal(err)
	}
	want := `EXTENSION  DISCOVERED  AGE  AT                   HANDLERS
mine       True        60s  https://127.0.0.1:1  check (BeforeClusterCreate)
prod       False       60m  service team/svc     
young      Unknown     0s   service /            
prod: nothing listens
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	out.Reset()
	if err := printExtensions(&out, now, nil); err != nil || !strings.Contains(out.String(), "slipway extension init") {
		t.Errorf("nothing to list: %s %v", out.String(), err)
	}
}
