package describe_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// A health check of the workers: Ready of the Node Unknown for 30 s, False for 60 s, or Available of the Machine False for 20 s.
func healthCheck(name string) clusterv1.MachineHealthCheck {
	c := clusterv1.MachineHealthCheck{ObjectMeta: meta(name, nil)}
	c.Spec.ClusterName = "demo"
	c.Spec.Selector.MatchLabels = map[string]string{"role": "worker"}
	c.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: n(30)},
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: n(60)},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, TimeoutSeconds: n(1)},
	}
	c.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "Available", Status: "False", TimeoutSeconds: n(20)}}
	return c
}

// HC-02, HC-03: the rows of Machines say when a health check has them remediated, and why.
func TestRemediation(t *testing.T) {
	silent := cond("NodeReady", "Unknown", "NodeReadyUnknown", "", 24*time.Second)
	check, quicker := healthCheck("workers"), healthCheck("quick")
	quicker.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = n(25)
	change := func(c clusterv1.MachineHealthCheck, f func(*clusterv1.MachineHealthCheck)) clusterv1.MachineHealthCheck {
		c = *c.DeepCopy()
		f(&c)
		return c
	}
	cases := map[string]struct {
		reason     string
		checks     []clusterv1.MachineHealthCheck
		conditions []metav1.Condition
		machine    func(*clusterv1.Machine)
		cluster    func(*clusterv1.Cluster)
		want       string
	}{
		"healthy": {"nothing to say", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{cond("NodeReady", "True", "NodeReady", "", time.Hour)}, nil, nil, ""},
		"silent":  {"when and why", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent}, nil, nil, "MachineHealthCheck workers remediates it in 6s: Ready of its Node is Unknown"},
		"over":    {"it is not marked yet", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{cond("NodeReady", "Unknown", "NodeReadyUnknown", "", time.Minute)}, nil, nil, "MachineHealthCheck workers is about to remediate it: Ready of its Node is Unknown"},
		"first":   {"the check that comes first", []clusterv1.MachineHealthCheck{check, quicker}, []metav1.Condition{silent}, nil, nil, "MachineHealthCheck quick remediates it in 1s: Ready of its Node is Unknown"},
		"sooner":  {"the condition that comes first", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent, cond("Available", "False", "NotReady", "", 18*time.Second)}, nil, nil, "MachineHealthCheck workers remediates it in 2s: Available is False"},
		"no Node": {"the Node could not be read", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{cond("NodeReady", "Unknown", "ConnectionDown", "", 24*time.Second)}, nil, nil, ""},
		"restricted": {"too many are unhealthy", []clusterv1.MachineHealthCheck{change(check, func(c *clusterv1.MachineHealthCheck) {
			c.Status.Conditions = []metav1.Condition{cond("RemediationAllowed", "False", "TooManyUnhealthy", "2 of 2 Machines are unhealthy", 0)}
		})}, []metav1.Condition{silent}, nil, nil, "MachineHealthCheck workers does not remediate it: 2 of 2 Machines are unhealthy"},
		"no template": {"the request cannot be created", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent, cond("ExternallyRemediated", "False", "RemediationTemplateNotFound", "FooTemplate x does not exist", 0)}, nil, nil,
			"MachineHealthCheck workers does not remediate it: FooTemplate x does not exist"},
		"deferred": {"the owner waits", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent, cond("OwnerRemediated", "False", "RemediationDeferred", "Another Machine is being remediated", 0)}, nil, nil,
			"MachineHealthCheck workers does not remediate it: Another Machine is being remediated"},
		"paused check": {"it does nothing", []clusterv1.MachineHealthCheck{change(check, func(c *clusterv1.MachineHealthCheck) {
			c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		})}, []metav1.Condition{silent}, nil, nil, ""},
		"another selector": {"it is not about the Machine", []clusterv1.MachineHealthCheck{change(check, func(c *clusterv1.MachineHealthCheck) {
			c.Spec.Selector.MatchLabels = map[string]string{"role": "other"}
		})}, []metav1.Condition{silent}, nil, nil, ""},
		"skipped": {"the owner of the Machine says so", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent}, func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
		}, nil, ""},
		"deleted": {"it is being replaced already", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent}, func(m *clusterv1.Machine) {
			at := metav1.NewTime(now())
			m.DeletionTimestamp = &at
		}, nil, ""},
		"outage": {"no Machine is judged then", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent}, nil, func(c *clusterv1.Cluster) {
			c.Status.Conditions = []metav1.Condition{cond("InfrastructureReady", "False", "NotReady", "", time.Hour)}
		}, ""},
		"too early": {"workers wait for their control plane", []clusterv1.MachineHealthCheck{check}, []metav1.Condition{silent}, nil, func(c *clusterv1.Cluster) {
			c.Status.Initialization.ControlPlaneInitialized = nil
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			yes := true
			cluster := &clusterv1.Cluster{ObjectMeta: meta("demo", nil)}
			cluster.Status.Initialization.ControlPlaneInitialized = &yes
			m := machine(meta("w", nil, "role", "worker"), "ExampleMachine", tc.conditions...)
			if tc.machine != nil {
				tc.machine(&m)
			}
			if tc.cluster != nil {
				tc.cluster(cluster)
			}
			root := describe.Build(describe.Snapshot{Now: now(), Cluster: cluster, Machines: []clusterv1.Machine{m}, Checks: tc.checks}, describe.Options{Grouping: true})
			shown := describe.Render(root, describe.Style{Now: now()})
			if !strings.Contains(shown, tc.want) || strings.Contains(shown, "MachineHealthCheck") != (tc.want != "") {
				t.Errorf("%s: want %q in\n%s", tc.reason, tc.want, shown)
			}
			if got := root.Find("Machine", "w").Remediation; (got != nil) != (tc.want != "") {
				t.Errorf("%s: got %+v, want %q", tc.reason, got, tc.want)
			}
			later := describe.Render(describe.Build(describe.Snapshot{Now: now().Add(time.Second), Cluster: cluster, Machines: []clusterv1.Machine{m}, Checks: tc.checks}, describe.Options{Grouping: true}), describe.Style{})
			if diff := cmp.Diff(describe.Render(root, describe.Style{}), later); diff != "" {
				t.Errorf("the time alone changes what is shown, and a watch would print it each second (-before +later):\n%s", diff)
			}
		})
	}
}

// Health checks of other clusters are left out, and who may not read any sees the tree without them.
func TestReadChecks(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), addonsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mine, other := healthCheck("mine"), healthCheck("other")
	other.Spec.ClusterName = "another"
	cluster := &clusterv1.Cluster{ObjectMeta: meta("demo", nil)}
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"allowed":   {nil, 1},
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{Resource: "machinehealthchecks"}, "", nil), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, &mine, &other).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, ok := list.(*clusterv1.MachineHealthCheckList); ok && tc.err != nil {
						return tc.err
					}
					if strings.HasPrefix(list.GetObjectKind().GroupVersionKind().Kind, "Event") {
						return nil
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			s, err := describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{})
			if err != nil || len(s.Checks) != tc.want {
				t.Errorf("got %d health checks, %v", len(s.Checks), err)
			}
		})
	}
}
