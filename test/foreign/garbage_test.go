package foreign

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// target is an object of the provider, and the object of Cluster API that repeats one of its conditions.
type target struct {
	u  *unstructured.Unstructured
	at conditioned
	// condition of the one, and mirrored of the other.
	condition, mirrored string
}

// throw gives each object a bad document, {"spec": …, "status": …}, and sees that what is right beside it is told nevertheless, or
// that the condition names the field that is wrong.
func (w *world) throw(documents []string, create func(name string) target) []target {
	w.Helper()
	var targets []target
	for i := range documents {
		targets = append(targets, create(fmt.Sprintf("g%d", i)))
	}
	for _, t := range targets {
		w.saying(t.at, t.mirrored, "False Not")
	}
	for i, t := range targets {
		var bad map[string]any
		w.must(json.Unmarshal([]byte(documents[i]), &bad))
		change(w, t.u, func(u *unstructured.Unstructured) {
			for _, part := range []string{"spec", "status"} {
				if over, ok := bad[part]; ok {
					u.Object[part] = merge(u.Object[part], over)
				}
			}
			provider.SetCondition(u, t.condition, metav1.ConditionFalse, "what is right")
		})
	}
	until := time.Now().Add(patience)
	for i, t := range targets {
		w.Run(fmt.Sprintf("%.90s", documents[i]), func(test *testing.T) {
			part := *w
			part.T, part.until = test, until
			part.eventually(t.at, func() string {
				told := says(t.at, t.mirrored, "False ForeignFalse: what is right")
				if says(t.at, t.mirrored, "Unknown", "field ") == "" || says(t.at, t.mirrored, "False NotReady: Waiting for", " to set spec.") == "" {
					return "" // what is wrong is said instead
				}
				return told
			})
		})
	}
	return targets
}

// handOver empties the status of an object and gives it to the provider.
func (w *world) handOver(u *unstructured.Unstructured) {
	w.Helper()
	change(w, u, func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{} })
	change(w, u, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
}

// merge lays the fields of one object over those of another.
func merge(base, over any) any {
	m, ok := over.(map[string]any)
	if !ok {
		return base
	}
	out, ok := base.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (w *world) garbageClusters(f family) {
	var infra *unstructured.Unstructured
	c := &clusterv1.Cluster{}
	w.check("76, 79, 80 what is wrong in an InfraCluster hides nothing that is right", func(w *world) {
		targets := w.throw([]string{
			`{"status": {"initialization": true}}`, `{"status": {"initialization": {"provisioned": "yes"}}}`, `{"status": {"initialization": {"provisioned": 1}}}`,
			`{"spec": {"controlPlaneEndpoint": "1.2.3.4:6443"}}`, `{"spec": {"controlPlaneEndpoint": {"host": "1.2.3.4", "port": "6443"}}}`,
			`{"spec": {"controlPlaneEndpoint": {"host": "1.2.3.4", "port": 70000}}}`, `{"spec": {"controlPlaneEndpoint": {"host": 5, "port": 0}}}`,
			`{"status": {"failureDomains": "abc"}}`, `{"status": {"failureDomains": ["a"]}}`, `{"status": {"failureDomains": {"a": 1}}}`,
			`{"status": {"initialization": {"provisioned": true}, "failureDomains": [{"name": "a"}, {"name": "a"}]}}`,
			`{"status": {"initialization": {"provisioned": true}, "failureDomains": [{"controlPlane": true}]}}`,
			`{"status": {"initialization": {"provisioned": true}, "failureDomains": [{"name": "` + strings.Repeat("a", 300) + `"}]}}`,
		}, func(name string) target {
			p := w.newClusterNamed(f, name)
			w.create(p.Cluster, annotated(p.infra, provider.HandsOff), p.plane)
			return target{p.infra, p.Cluster, "Ready", "InfrastructureReady"}
		})
		infra, c = targets[0].u, targets[0].at.(*clusterv1.Cluster)
	})
	w.check("79 a right value is taken later", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.Set(u, map[string]any{"host": "right.example", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
			provider.Set(u, []any{map[string]any{"name": "a"}}, "status", "failureDomains")
			provider.SetCondition(u, "Ready", metav1.ConditionTrue, "")
		})
		w.provisioned(f, infra, true)
		w.eventually(c, func() string {
			return unless(c.Spec.ControlPlaneEndpoint.Host != "" && len(c.Status.FailureDomains) == 1, "endpoint %v, failure domains %v", c.Spec.ControlPlaneEndpoint, c.Status.FailureDomains)
		})
		w.saying(c, "Available", "True")
	})
}

func (w *world) garbageControlPlanes(f family) {
	w.check("81 what is wrong in a control plane hides nothing that is right", func(w *world) {
		w.throw([]string{
			`{"status": {"replicas": "3"}}`, `{"status": {"replicas": -1}}`, `{"status": {"replicas": 1e12, "readyReplicas": 1.5}}`, `{"spec": {"replicas": -7}}`,
			`{"status": {"version": 5}}`, `{"status": {"version": "no version"}}`, `{"status": {"versions": "v1"}}`, `{"status": {"versions": [1, null]}}`,
			`{"status": {"versions": [{"version": "v1.36.3", "replicas": -1}, {"version": "v1.36.3"}]}}`, `{"status": {"versions": [{"version": "` + strings.Repeat("v", 500) + `"}]}}`,
			`{"status": {"externalManagedControlPlane": "true", "initialization": "yes"}}`, `{"status": {"selector": {}, "upToDateReplicas": []}}`,
		}, func(name string) target {
			p := w.newClusterNamed(f, name)
			w.create(p.Cluster, p.infra, annotated(p.plane, provider.HandsOff))
			return target{p.plane, p.Cluster, "Available", "ControlPlaneAvailable"}
		})
	})
}

func (w *world) garbageMachines(f family) {
	w.up(f)
	m, infra := &clusterv1.Machine{}, &unstructured.Unstructured{}
	w.check("76, 77, 80 what is wrong in an InfraMachine hides nothing that is right", func(w *world) {
		targets := w.throw([]string{
			`{"status": {"initialization": []}}`, `{"status": {"initialization": {"provisioned": "yes"}}}`, `{"status": {"initialization": {"provisioned": {}}}}`,
			`{"status": {"initialization": {"provisioned": true}}}`, `{"status": {"initialization": {"provisioned": true}}, "spec": {"providerID": ""}}`,
			`{"status": {"initialization": {"provisioned": true}}, "spec": {"providerID": 5}}`,
			`{"status": {"addresses": [{"type": "Weird", "address": "10.0.0.1"}]}}`, `{"status": {"addresses": [{"type": "InternalIP"}]}}`,
			`{"status": {"addresses": "10.0.0.1"}}`, `{"status": {"addresses": [1, null, {}]}}`, `{"status": {"failureDomain": "` + strings.Repeat("z", 300) + `"}}`,
			`{"status": {"failureDomain": 5, "interruptible": "no"}}`,
		}, func(name string) target {
			m, u := w.newMachine(f, name), annotated(f.machine.New(w.namespace, name), provider.HandsOff)
			w.create(m, u)
			return target{u, m, "Ready", "InfrastructureReady"}
		})
		infra, m = targets[0].u, targets[0].at.(*clusterv1.Machine)
	})
	w.check("78 conditions that are none are reported, and do not stop anything", func(w *world) {
		for _, bad := range []string{`"no list"`, `[1, null, {}]`, `[{"type": "Ready", "status": "Perhaps"}]`} {
			var list any
			w.must(json.Unmarshal([]byte(bad), &list))
			change(w, infra, func(u *unstructured.Unstructured) { provider.Set(u, list, "status", "conditions") })
		}
		w.saying(m, "InfrastructureReady", "Unknown InvalidConditionReported")
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.Set(u, []any{map[string]any{"type": "Ready", "status": "False", "reason": "no reason!" + strings.Repeat("x", 2000), "message": strings.Repeat("long ", 8000)}}, "status", "conditions")
		})
		w.saying(m, "InfrastructureReady", "False no_reason_xxx", "long long")
	})
	w.check("77 a right value is taken later", func(w *world) {
		w.handOver(infra)
		w.saying(m, "Ready", "True")
	})
}

func (w *world) garbagePools(f family) {
	w.up(f)
	p, infra := &clusterv1.MachinePool{}, &unstructured.Unstructured{}
	w.check("80, 82 what is wrong in an InfraMachinePool hides nothing that is right", func(w *world) {
		targets := w.throw([]string{
			`{"spec": {"providerIDList": "x://1"}}`, `{"spec": {"providerIDList": [1, null]}}`, `{"spec": {"providerIDList": {"a": "b"}}}`,
			`{"spec": {"providerIDList": [""]}, "status": {"replicas": 1, "initialization": {"provisioned": true}}}`,
			`{"spec": {"providerIDList": ["x://` + strings.Repeat("i", 600) + `"]}, "status": {"replicas": 1, "initialization": {"provisioned": true}}}`,
			`{"spec": {"providerIDList": ["x://1", "x://1"]}, "status": {"replicas": 2, "initialization": {"provisioned": true}}}`,
			`{"status": {"replicas": -3, "initialization": {"provisioned": true}}}`, `{"status": {"replicas": "3"}}`, `{"status": {"replicas": 1e12}}`,
			`{"status": {"infrastructureMachineKind": {}}}`, `{"status": {"instances": 5, "ready": "yes"}}`,
		}, func(name string) target {
			p, u := w.newPool(f, name), annotated(f.pool.New(w.namespace, name), provider.HandsOff)
			w.create(p, u)
			return target{u, p, "Ready", "InfrastructureReady"}
		})
		infra, p = targets[0].u, targets[0].at.(*clusterv1.MachinePool)
	})
	w.check("82 a kind of machines that is not installed is named", func(w *world) { // X15
		change(w, infra, func(u *unstructured.Unstructured) {
			u.Object["spec"] = map[string]any{"providerIDList": []any{"x://5"}}
			u.Object["status"] = map[string]any{"initialization": map[string]any{"provisioned": true}, "replicas": int64(1), "infrastructureMachineKind": "NoSuchKind"}
		})
		w.saying(p, "InfrastructureReady", "Unknown InternalError", "status.infrastructureMachineKind", "NoSuchKind", "install")
	})
	w.check("82 a right value is taken later", func(w *world) {
		w.handOver(infra)
		w.saying(p, clusterv1.AvailableCondition, "True")
	})
}
