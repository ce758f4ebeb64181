package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/internal/ui"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

// world is a server of the page, for management clusters in memory.
type world struct {
	api *mirrortest.API
	// first is the address that "slipway ui" prints, and base the address of the pages.
	first, base string
	// stop ends the server.
	stop func()
}

// newAPI starts an API without a cluster.
func newAPI(t *testing.T) *mirrortest.API {
	t.Helper()
	if chromium == nil {
		t.Skip("make test-browser runs this test")
	}
	return mirrortest.Start(t, "")
}

// serve serves the page of management clusters with the titles prod-eu and staging until the test ends. The time stands
// still.
func serve(t *testing.T, apis ...*mirrortest.API) *world {
	t.Helper()
	var sources []*ui.Source
	for i, api := range apis {
		source, err := ui.NewSource(ui.SourceOptions{
			Title: []string{"prod-eu", "staging"}[i], Config: api.Config(), Now: mirrortest.Now, Plans: plans,
			Metrics: func(context.Context) ([]byte, error) { return []byte(metrics), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, source)
	}
	server, err := ui.NewServer(sources, mirrortest.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	guard, err := ui.NewGuard(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, guard) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &world{api: apis[0], first: guard.URL(), base: "http://" + l.Addr().String(), stop: cancel}
}

// template is a cluster whose names are placeholders, as the JSON of its objects.
type template []string

const (
	namespaceMark = "q1namespace"
	nameMark      = "q2name"
	messageMark   = "q3message"
)

func newTemplate(yaml string) template {
	var out template
	for _, u := range mirrortest.Objects(yaml) {
		data, err := json.Marshal(u.Object)
		if err != nil {
			panic(err)
		}
		out = append(out, string(data))
	}
	return out
}

// healthy returns the objects of a cluster without problems.
func healthy() template { return newTemplate(mirrortest.Cluster(namespaceMark, nameMark)) }

// broken returns the objects that make the cluster a cluster with a problem.
func broken() template { return newTemplate(mirrortest.Broken(namespaceMark, nameMark, messageMark)) }

// objects returns the objects with names and a message of any characters.
func (tmpl template) objects(namespace, name, message string) []*unstructured.Unstructured {
	marks := strings.NewReplacer(namespaceMark, quoted(namespace), nameMark, quoted(name), messageMark, quoted(message))
	var out []*unstructured.Unstructured
	for _, text := range tmpl {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(marks.Replace(text)), &u.Object); err != nil {
			panic(err)
		}
		out = append(out, u)
	}
	return out
}

// quoted returns the text as the content of a JSON string.
func quoted(text string) string {
	data, _ := json.Marshal(text) // cannot fail for a string
	return string(data[1 : len(data)-1])
}

func put(api *mirrortest.API, objects ...*unstructured.Unstructured) {
	for _, u := range objects {
		api.PutObject(u)
	}
}

// breakCluster gives the worker of a cluster a problem.
func breakCluster(api *mirrortest.API, namespace, name, message string) {
	put(api, broken().objects(namespace, name, message)...)
}

func find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	panic("no " + kind + " " + name)
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// setCondition changes a condition of an object, which must have it.
func setCondition(u *unstructured.Unstructured, change map[string]any) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == change["type"] {
			for key, value := range change {
				c[key] = value
			}
			set(u, all, "status", "conditions")
			return
		}
	}
	panic(fmt.Sprint("no condition ", change["type"]))
}

func ago(minutes int) string {
	return mirrortest.Now().Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339)
}

// demo is a small fleet in which every page has content: problems, a rollout, a hook that blocks, and a paused cluster.
func demo(t *testing.T) *mirrortest.API {
	t.Helper()
	api := newAPI(t)
	for _, of := range []string{
		"data/archive", "data/lake", "data/warehouse", "payments/ledger", "payments/gateway", "payments/fraud", "search/crawler", "search/index",
		"search/suggest", "shop/cart", "shop/catalog", "shop/checkout", "shop/reviews",
	} {
		namespace, name, _ := strings.Cut(of, "/")
		put(api, healthy().objects(namespace, name, "")...)
	}
	breakCluster(api, "payments", "ledger", "Container ledger-md-a-1 of this host belongs to LocalMachine staging/ledger-md-a-1; remove it or choose another name")
	breakCluster(api, "search", "crawler", "The volume of container crawler-md-a-1 is full: 0 bytes of 20 GiB are free")
	paused := find(healthy().objects("data", "archive", ""), "Cluster", "archive")
	set(paused, true, "spec", "paused")
	put(api, paused)
	upgrade(api, "data", "warehouse")
	block(t, api, "shop", "cart")
	api.Put(t, extension)
	for i, note := range []string{"Container ledger-md-a-1 belongs to LocalMachine staging/ledger-md-a-1", "Reconciled again after a change of the host", "Container ledger-md-a-1 belongs to LocalMachine staging/ledger-md-a-1"} {
		event(t, api, map[string]string{
			"namespace": "payments", "name": fmt.Sprint("e", i), "apiVersion": "infrastructure.slipway.dev/v1alpha1", "kind": "LocalMachine",
			"object": "ledger-md-a-1", "reason": "MachineNotOwned", "note": note, "type": []string{"Warning", "Normal", "Warning"}[i], "minutes": fmt.Sprint(2 + 9*i),
		})
	}
	return api
}

// event writes an Event about an object, minutes ago.
func event(t *testing.T, api *mirrortest.API, v map[string]string) {
	t.Helper()
	minutes, err := time.ParseDuration(v["minutes"] + "m")
	if err != nil {
		t.Fatal(err)
	}
	put(api, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": map[string]any{"namespace": v["namespace"], "name": v["name"]},
		"regarding": map[string]any{"apiVersion": v["apiVersion"], "kind": v["kind"], "namespace": v["namespace"], "name": v["object"]},
		"eventTime": mirrortest.Now().Add(-minutes).Format("2006-01-02T15:04:05.000000Z"), "type": v["type"], "reason": v["reason"], "note": v["note"],
		"action": "Check", "reportingController": "localmachine",
	}})
}

// block makes a hook of a Runtime Extension block the upgrade of a cluster.
func block(t *testing.T, api *mirrortest.API, namespace, name string) {
	t.Helper()
	const note = "Hook BeforeClusterUpgrade: handler freeze.guard blocks: no changes before Monday 08:00 UTC"
	cluster := find(healthy().objects(namespace, name, ""), "Cluster", name)
	setCondition(cluster, map[string]any{"type": "TopologyReconciled", "status": "False", "reason": "ClusterUpgrading", "message": "Cluster is waiting for Hook BeforeClusterUpgrade: no changes before Monday 08:00 UTC", "lastTransitionTime": ago(40)})
	set(cluster, "v1.36.2", "spec", "topology", "version")
	put(api, cluster)
	event(t, api, map[string]string{
		"namespace": namespace, "name": "blocked", "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "object": name,
		"reason": "HookBlocking", "note": note, "type": "Normal", "minutes": "40",
	})
}

// upgrade makes a cluster one in the middle of a rollout of its control plane.
func upgrade(api *mirrortest.API, namespace, name string) {
	all := healthy().objects(namespace, name, "")
	cluster, machine := find(all, "Cluster", name), find(all, "Machine", name+"-cp")
	set(cluster, map[string]any{
		"desiredReplicas": int64(3), "replicas": int64(4), "readyReplicas": int64(3), "availableReplicas": int64(3), "upToDateReplicas": int64(2),
		"versions": []any{map[string]any{"version": "v1.35.4", "replicas": int64(2)}, map[string]any{"version": "v1.36.0", "replicas": int64(2)}},
	}, "status", "controlPlane")
	put(api, cluster)
	for i, m := range []struct {
		version                    string
		created, ready, deletedAgo int
	}{
		{"v1.35.4", 2880, 2870, 4}, {"v1.35.4", 2880, 2870, 0}, {"v1.36.0", 40, 34, 0}, {"v1.36.0", 21, 14, 0}, {"v1.36.0", 3, 0, 0},
	} {
		u := machine.DeepCopy()
		u.SetName(fmt.Sprintf("%s-cp-%c%d", name, "xkwpz"[i], i+3))
		set(u, m.version, "spec", "version")
		set(u, ago(m.created), "metadata", "creationTimestamp")
		if m.deletedAgo > 0 {
			set(u, ago(m.deletedAgo), "metadata", "deletionTimestamp")
		}
		for _, condition := range []string{"Ready", "Available", "NodeReady", "NodeHealthy", "InfrastructureReady", "BootstrapConfigReady"} {
			setCondition(u, map[string]any{"type": condition, "lastTransitionTime": ago(max(m.ready, 1))})
		}
		if m.version == "v1.35.4" {
			setCondition(u, map[string]any{"type": "UpToDate", "status": "False", "reason": "NotUpToDate", "message": "* Version v1.35.4, v1.36.0 required"})
		}
		if m.ready == 0 {
			unstructured.RemoveNestedField(u.Object, "status", "nodeRef")
			for _, condition := range []string{"Ready", "Available", "NodeReady", "NodeHealthy"} {
				setCondition(u, map[string]any{"type": condition, "status": "False", "reason": "NodeDoesNotExist", "message": "Waiting for the Node of the Machine to appear"})
			}
		}
		put(api, u)
	}
	api.Delete("machines", namespace, name+"-cp")
}

// plans returns the plan of the manager for LocalMachines with a problem.
func plans(_ context.Context, of rootcause.Ref) ([]ui.Plan, bool, error) {
	if of.Kind != "LocalMachine" || of.Name != "ledger-md-a-1" {
		return nil, false, nil
	}
	return []ui.Plan{{
		Controller: "localmachine", Time: mirrortest.Now().Add(-20 * time.Second), Recheck: "1m0s",
		Waits: []ui.PlanWait{{Wait: rootcause.Wait{
			Reason: "MachineNotOwned", Message: "Container ledger-md-a-1 of this host belongs to LocalMachine staging/ledger-md-a-1",
			Since: mirrortest.Now().Add(-5 * time.Minute), User: true,
		}, Until: "until the container is removed"}},
	}}, true, nil
}

const extension = `
apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: guard, creationTimestamp: "2026-05-01T00:00:00Z"}
spec: {clientConfig: {service: {name: guard, namespace: hooks, port: 9443}}}
status:
  handlers:
  - {name: freeze.guard, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterUpgrade}, timeoutSeconds: 5, failurePolicy: Fail}
  conditions: [{type: Discovered, status: "True", reason: Discovered, message: "", lastTransitionTime: "2026-05-01T00:00:00Z"}]
`

const metrics = `# TYPE capi_runtime_sdk_requests_total counter
capi_runtime_sdk_requests_total{code="200",status="Success",host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 40
capi_runtime_sdk_requests_total{code="200",status="Failure",host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 2
# TYPE capi_runtime_sdk_request_duration_seconds histogram
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="0.01"} 30
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="1"} 42
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="+Inf"} 42
capi_runtime_sdk_request_duration_seconds_sum{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 12
capi_runtime_sdk_request_duration_seconds_count{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 42
# TYPE slipway_runtime_sdk_circuit_open gauge
slipway_runtime_sdk_circuit_open{extension="guard"} 1
# TYPE slipway_runtime_sdk_calls_in_flight gauge
slipway_runtime_sdk_calls_in_flight{extension="guard"} 2
`

// paths of a page of each kind, of the fleet that demo returns.
const (
	fleetPath      = "/m/prod-eu/"
	clusterPath    = "/m/prod-eu/cluster/payments/ledger"
	rolloutPath    = "/m/prod-eu/cluster/data/warehouse"
	hookPath       = "/m/prod-eu/cluster/shop/cart"
	objectPath     = "/m/prod-eu/object/infrastructure.slipway.dev/LocalMachine/payments/ledger-md-a-1"
	extensionsPath = "/m/prod-eu/extensions"
	needsPath      = "/needs"
	missingPath    = "/m/prod-eu/cluster/none/none"
)

func allPaths() []string {
	return []string{fleetPath, fleetPath + "?q=nothing+matches", clusterPath, clusterPath + "?all=1", rolloutPath, hookPath, objectPath, extensionsPath, needsPath, missingPath}
}

// rows are the names of the clusters in the table of the fleet.
const rows = `[...document.querySelectorAll("table.fleet tbody th")].map(e => e.textContent).join(" ")`
