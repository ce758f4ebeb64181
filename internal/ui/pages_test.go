package ui

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

const hostile = `<script>alert(1)</script>`

// testServer returns a server of one management cluster that has been read.
func testServer(t testing.TB, api *mirrortest.API, change func(*SourceOptions)) *Server {
	t.Helper()
	o := SourceOptions{Title: "prod " + hostile, Config: api.Config(), Now: mirrortest.Now}
	if change != nil {
		change(&o)
	}
	source, err := NewSource(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer([]*Source{source}, mirrortest.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := source.mirror.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.refresh()
	if !source.isReady() {
		t.Fatalf("the source is not ready: %+v", source.mirror.Status())
	}
	return s
}

// page gets a page and checks what holds for every page.
func page(t testing.TB, s *Server, path string, code int) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body := w.Body.String()
	if w.Code != code {
		t.Fatalf("%s: status %d, want %d:\n%s", path, w.Code, code, body)
	}
	checkDocument(t, path, body)
	return body
}

// checkDocument checks that a page has no inline script or style, one main landmark and heading, unique IDs, and headers of
// every table.
func checkDocument(t testing.TB, path, body string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	count := map[string]int{}
	ids := map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				ids[a.Val]++
			case strings.HasPrefix(a.Key, "on"), a.Key == "style":
				t.Errorf("%s: <%s> has the attribute %s", path, n.Data, a.Key)
			case (a.Key == "href" || a.Key == "src") && !regexp.MustCompile(`^(/|\?|#)`).MatchString(a.Val):
				t.Errorf("%s: <%s> leads to %q", path, n.Data, a.Val)
			}
		}
		if n.Data == "script" && n.FirstChild != nil || n.Data == "style" {
			t.Errorf("%s: inline <%s>", path, n.Data)
		}
		role := map[string]string{"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}[n.Data]
		if role != "" && !slices.Contains(n.Attr, html.Attribute{Key: "role", Val: role}) {
			t.Errorf("%s: <%s> has no role %s, which the stylesheet for narrow screens would remove", path, n.Data, role)
		}
		if n.Data == "td" && !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-label" }) {
			t.Errorf("%s: a cell has no label", path)
		}
		if n.Data == "a" && hasImageAround(n) {
			t.Errorf("%s: a link is in a picture with the role img", path)
		}
		if n.Data == "th" && !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "scope" }) {
			t.Errorf("%s: a table header has no scope", path)
		}
	}
	for _, one := range []string{"main", "h1", "header", "footer", "script"} {
		if count[one] != 1 {
			t.Errorf("%s: %d elements %s", path, count[one], one)
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: ID %s %d times", path, id, n)
		}
	}
	if strings.Contains(body, hostile) || strings.ContainsRune(body, '\u202e') {
		t.Errorf("%s: the page contains text that is not escaped", path)
	}
}

func hasImageAround(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if slices.Contains(n.Attr, html.Attribute{Key: "role", Val: "img"}) {
			return true
		}
	}
	return false
}

func contains(t *testing.T, page, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s: the page does not contain %q:\n%s", page, text, body)
		}
	}
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

const testMetrics = `# TYPE capi_runtime_sdk_requests_total counter
capi_runtime_sdk_requests_total{code="200",status="Success",host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 40
capi_runtime_sdk_requests_total{code="200",status="Failure",host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 2
capi_runtime_sdk_requests_total{code="<error>",status="Unknown",host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 3
# TYPE capi_runtime_sdk_request_duration_seconds histogram
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="0.01"} 30
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="1"} 45
capi_runtime_sdk_request_duration_seconds_bucket{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade",le="+Inf"} 45
capi_runtime_sdk_request_duration_seconds_sum{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 12
capi_runtime_sdk_request_duration_seconds_count{host="guard.hooks.svc:9443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterUpgrade"} 45
# TYPE slipway_runtime_sdk_circuit_open gauge
slipway_runtime_sdk_circuit_open{extension="guard"} 1
# TYPE slipway_runtime_sdk_calls_in_flight gauge
slipway_runtime_sdk_calls_in_flight{extension="guard"} 2
`

func troubled(t testing.TB) *mirrortest.API {
	t.Helper()
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good")+"\n---\n"+mirrortest.Cluster("team", "bad"))
	api.Put(t, mirrortest.Broken("team", "bad", "Container bad-md-a-1 does not run: "+hostile+" \u202egnp.exe"))
	api.Put(t, extension)
	api.Put(t, fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {namespace: team, name: one}
regarding: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, namespace: team, name: bad-md-a-1}
eventTime: %q
type: Warning
reason: ContainerStopped
action: Check
note: "The container ended %s"
reportingController: localmachine
`, mirrortest.Now().Add(-4*time.Minute).Format("2006-01-02T15:04:05.000000Z"), hostile))
	return api
}

func TestFleetPage(t *testing.T) {
	s := testServer(t, troubled(t), nil)
	body := page(t, s, "/m/prod-script-alert-1-script/", 200)
	contains(t, "fleet", body, `<a href="/m/prod-script-alert-1-script/cluster/team/bad"><bdi>bad</bdi></a>`, "LocalMachine bad-md-a-1: Container bad-md-a-1 does not run", "&lt;script&gt;", `\u202egnp.exe`,
		"/m/prod-script-alert-1-script/object/infrastructure.slipway.dev/LocalMachine/team/bad-md-a-1", "0 of 1 ready, 1 up to date", "v1.36.0")
	if bad, good := strings.Index(body, `id="r-team_bad"`), strings.Index(body, `id="r-team_good"`); bad < 0 || good < bad {
		t.Errorf("the cluster with a problem is not first: %d, %d", bad, good)
	}
	for query, want := range map[string][]string{
		"":                        {"bad", "good"},
		"?sort=name":              {"bad", "good"},
		"?health=Healthy":         {"good"},
		"?q=CONTAINER+bad":        {"bad"},
		"?q=good":                 {"good"},
		"?label=team%3Da":         {"bad", "good"},
		"?label=team%3Db":         nil,
		"?label=%3D%3D%3D":        {"bad", "good"},
		"?namespace=other":        nil,
		"?class=local":            {"bad", "good"},
		"?version=v1.36.0":        {"bad", "good"},
		"?version=v1.1.0":         nil,
		"?provider=LocalCluster":  {"bad", "good"},
		"?q=%3Cscript%3Ealert(1)": {"bad"},
	} {
		var got []string
		for _, m := range regexp.MustCompile(`<tr id="r-team_([a-z]+)"`).FindAllStringSubmatch(page(t, s, "/m/prod-script-alert-1-script/"+query, 200), -1) {
			got = append(got, m[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", query, diff)
		}
	}
}

func TestClusterPage(t *testing.T) {
	s := testServer(t, troubled(t), nil)
	body := page(t, s, "/m/prod-script-alert-1-script/cluster/team/bad", 200)
	contains(t, "cluster", body, "Container bad-md-a-1 does not run", "What to do", "slipway describe cluster bad -n team", "ContainerStopped",
		"The container ended &lt;script&gt;", "MachineDeployment", `<time datetime="2026-05-04T11:55:00Z"`, "Machines by version and stage")
	all := page(t, s, "/m/prod-script-alert-1-script/cluster/team/bad?all=1", 200)
	contains(t, "cluster, all", all, "MachineSet", "KubeadmConfig", "Fold healthy objects")
	contains(t, "good cluster", page(t, s, "/m/prod-script-alert-1-script/cluster/team/good", 200), "Everything is as it should be.")
	contains(t, "no cluster", page(t, s, "/m/prod-script-alert-1-script/cluster/team/none", 404), "there is no cluster team/none")
}

func TestObjectPage(t *testing.T) {
	api := troubled(t)
	var asked []string
	s := testServer(t, api, func(o *SourceOptions) {
		o.Plans = func(_ context.Context, of rootcause.Ref) ([]Plan, bool, error) {
			asked = append(asked, of.String())
			if of.Kind == "Cluster" {
				return nil, false, errors.New("the manager does not respond")
			}
			return []Plan{{Controller: "localmachine", Time: mirrortest.Now().Add(-time.Second), Actions: []string{"start container " + hostile}, Waits: []PlanWait{{Wait: rootcause.Wait{Reason: "WaitingForContainer", Message: "Waiting for the container " + hostile}, Until: "until it changes"}}}}, true, nil
		}
	})
	base := "/m/prod-script-alert-1-script/object/"
	body := page(t, s, base+"infrastructure.slipway.dev/LocalMachine/team/bad-md-a-1", 200)
	contains(t, "object", body, "ContainerStopped", "start container &lt;script&gt;", "WaitingForContainer", "until it changes", "The container ended", "providerID: local://bad-md-a-1",
		`<span class="kind">Machine</span> <bdi>bad-md-a-1</bdi>`, "slipway kubectl get localmachine.infrastructure.slipway.dev bad-md-a-1 -n team -o yaml")
	contains(t, "cluster object", page(t, s, base+"cluster.x-k8s.io/Cluster/team/bad", 200), "the manager does not respond", "topology:")
	contains(t, "cluster-scoped", page(t, s, base+"runtime.cluster.x-k8s.io/ExtensionConfig/-/guard", 200), "freeze.guard")
	contains(t, "missing", page(t, s, base+"cluster.x-k8s.io/Machine/team/none", 404), "Machine team/none does not exist")
	contains(t, "no kind", page(t, s, base+"example.com/Thing/team/none", 404), "has no kind Thing")
	for _, path := range []string{"-/Secret/team/bad-kubeconfig", "-/ConfigMap/team/x", "-/Pod/team/x"} {
		contains(t, path, page(t, s, base+path, 403), "are not shown on this page")
	}
	if slices.ContainsFunc(api.Requests(), func(r string) bool { return strings.Contains(r, "secrets") || strings.Contains(r, "configmaps") }) {
		t.Errorf("requests: %v", api.Requests())
	}
	if len(asked) == 0 {
		t.Error("no plan was read")
	}
}

// The cause of a row is taken from plans, and a plan that is not read again does not remain.
func TestPlansOfRows(t *testing.T) {
	api := troubled(t)
	now := mirrortest.Now()
	waits := []PlanWait{{Wait: rootcause.Wait{Reason: "WaitingForQuota", Message: "Waiting for quota", Since: now.Add(-time.Minute), User: true}}}
	s := testServer(t, api, func(o *SourceOptions) {
		o.Now = func() time.Time { return now }
		o.Plans = func(_ context.Context, of rootcause.Ref) ([]Plan, bool, error) {
			return []Plan{{Controller: "localmachine", Waits: waits}}, of.Kind == "LocalMachine" && waits != nil, nil
		}
	})
	source, key := s.sources[0], fleet.Key{Namespace: "team", Name: "bad"}
	reason := func() string {
		source.refresh()
		row, _ := source.board.Cluster(key)
		return row.Reason
	}
	before := reason()
	source.readPlansOfProblems(t.Context())
	if got := reason(); got != "LocalMachine bad-md-a-1: Waiting for quota" {
		t.Errorf("with plans the reason is %q", got)
	}
	waits, now = nil, now.Add(planLife)
	source.dropStalePlans()
	if got := reason(); got != before {
		t.Errorf("without plans the reason is %q, before it was %q", got, before)
	}
}

// Calls of extensions change without a change of an object.
func TestExtensionsArePublished(t *testing.T) {
	s := testServer(t, troubled(t), func(o *SourceOptions) {
		o.Metrics = func(context.Context) ([]byte, error) { return []byte(testMetrics), nil }
	})
	source := s.sources[0]
	extensions, _ := s.hub.subscribe(s.topicsOf(source.url() + "extensions")...)
	fleetPage, _ := s.hub.subscribe(s.topicsOf(source.url())...)
	source.updatePlans(t.Context())
	if len(extensions.pending) != 1 || len(fleetPage.pending) != 0 {
		t.Errorf("events: extensions %d, fleet %d", len(extensions.pending), len(fleetPage.pending))
	}
}

func TestManagedFieldsAreFolded(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good"))
	api.Put(t, `{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, metadata: {namespace: team, name: m, creationTimestamp: "2026-05-04T11:00:00Z", managedFields: [{manager: "`+hostile+`", operation: Apply, fieldsV1: {"f:spec": {}}}]}, spec: {}}`)
	body := page(t, testServer(t, api, nil), "/m/prod-script-alert-1-script/object/infrastructure.slipway.dev/LocalMachine/team/m", 200)
	object, managed, ok := strings.Cut(body, "Managed fields of 1 manager")
	if !ok || strings.Contains(object, "f:spec") || !strings.Contains(managed, "f:spec") {
		t.Errorf("managed fields:\n%s", body)
	}
}

func TestExtensionsPage(t *testing.T) {
	path := "/m/prod-script-alert-1-script/extensions"
	contains(t, "without a manager", page(t, testServer(t, troubled(t), nil), path, 200), "freeze.guard", "BeforeClusterUpgrade", "No Slipway manager is known")
	s := testServer(t, troubled(t), func(o *SourceOptions) {
		o.Metrics = func(context.Context) ([]byte, error) { return []byte(testMetrics), nil }
	})
	contains(t, "with metrics", page(t, s, path, 200), ">45</td>", `class="failed">5</td>`, "≤ 10ms", "≤ 1s", "open", "not called, because calls failed")
	s = testServer(t, troubled(t), func(o *SourceOptions) {
		o.Metrics = func(context.Context) ([]byte, error) { return nil, errors.New("forbidden " + hostile) }
	})
	contains(t, "forbidden", page(t, s, path, 200), "cannot be read: forbidden")
}

// The page shows an ExtensionConfig with the CA bundle that the controller has injected, which is longer than texts in the mirror.
func TestExtensionWithBundle(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good"))
	bundle := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("certificate ", 200)))
	api.Put(t, strings.Replace(extension, "{clientConfig: {service:", "{clientConfig: {caBundle: "+bundle+", service:", 1))
	body := page(t, testServer(t, api, nil), "/m/prod-script-alert-1-script/extensions", 200)
	contains(t, "with a CA bundle", body, "freeze.guard", "guard.hooks.svc:9443")
	if strings.Contains(body, "unknown type") {
		t.Errorf("the ExtensionConfig is not decoded:\n%s", body)
	}
}

func TestNeedsPage(t *testing.T) {
	s := testServer(t, troubled(t), nil)
	row, _ := s.sources[0].board.Cluster(fleet.Key{Namespace: "team", Name: "bad"})
	body := page(t, s, "/needs", 200)
	if row.NeedsUser != strings.Contains(body, `_team_bad"`) || strings.Contains(body, `_team_good"`) {
		t.Errorf("needs a user: %v, page:\n%s", row.NeedsUser, body)
	}
	page(t, s, "/m/unknown/", 404)
}

func TestLongAndStrangeNames(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good"))
	long := strings.Repeat("a", 253)
	for i, name := range []string{long, "مرحبا", "日本語", `"><img src=x onerror=alert(1)>`, "a b?c#d%2e", "\u202eevil"} {
		api.Put(t, fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: team, name: %q, creationTimestamp: "2026-05-04T11:00:00Z"}, spec: {topology: {classRef: {name: %q}, version: %q}, infrastructureRef: {apiGroup: g, kind: %q, name: x}}, status: {phase: %q, conditions: [{type: %q, status: "False", reason: %q, message: %q, lastTransitionTime: "2026-05-04T11:0%d:00Z"}, {type: Available, status: "False", reason: R, message: %q, lastTransitionTime: "2026-05-04T11:00:00Z"}]}}`,
			name, name, name, name, name, name, name, strings.Repeat(name, 40), i, hostile))
	}
	s := testServer(t, api, nil)
	body := page(t, s, "/m/prod-script-alert-1-script/?q="+strings.Repeat("x", 100), 200)
	body += page(t, s, "/m/prod-script-alert-1-script/", 200)
	for _, m := range regexp.MustCompile(`href="(/m/[^"]+)"`).FindAllStringSubmatch(body, -1) {
		path := strings.ReplaceAll(m[1], "&amp;", "&")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code >= 500 || w.Code == http.StatusMovedPermanently {
			t.Errorf("%s: %d", path, w.Code)
		}
		if w.Code == 200 {
			checkDocument(t, path, w.Body.String())
		}
	}
}

func TestTopics(t *testing.T) {
	s := testServer(t, troubled(t), nil)
	for path, want := range map[string][]string{
		"/m/prod-script-alert-1-script/": {"prod-script-alert-1-script/fleet"},
		"/needs":                         {"prod-script-alert-1-script/fleet"},
		"/m/prod-script-alert-1-script/extensions":                                  {"prod-script-alert-1-script/extensions"},
		"/m/prod-script-alert-1-script/cluster/team/bad":                            {"prod-script-alert-1-script/cluster/team/bad"},
		"/m/prod-script-alert-1-script/object/cluster.x-k8s.io/Machine/team/bad-cp": {"prod-script-alert-1-script/object/cluster.x-k8s.io/Machine/team/bad-cp", "prod-script-alert-1-script/cluster/team/bad"},
		"/m/none/":   nil,
		"/":          nil,
		"":           nil,
		"/m/%zz/":    nil,
		"/m/a/b/c/d": nil,
	} {
		if diff := cmp.Diff(want, s.topicsOf(path)); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
}

// A change of a LocalMachine is published to the pages of its cluster and of the fleet, and the page shows it.
func TestChangeIsShown(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "good"))
	s := testServer(t, api, nil)
	source := s.sources[0]
	fleetPage, _ := s.hub.subscribe(source.topic("fleet"))
	other, _ := s.hub.subscribe(source.topic("cluster/team/other"))
	for _, u := range mirrortest.Objects(mirrortest.Broken("team", "good", "it ended")) {
		source.store.Put(u)
	}
	source.refresh()
	if len(fleetPage.pending) != 1 || len(other.pending) != 0 {
		t.Errorf("events: fleet %d, other cluster %d", len(fleetPage.pending), len(other.pending))
	}
	contains(t, "fleet", page(t, s, "/m/prod-script-alert-1-script/", 200), "it ended")
	<-fleetPage.pending
	source.store.Drop(rootcause.Ref{Group: "cluster.x-k8s.io", Kind: "Machine", Namespace: "team", Name: "good-md-a-1"})
	source.refresh()
	contains(t, "cluster", page(t, s, "/m/prod-script-alert-1-script/cluster/team/good", 200), `class="name gone"`)
}

func TestSlugs(t *testing.T) {
	sources := []*Source{newSource(SourceOptions{Title: "kind-dev@EU"}), newSource(SourceOptions{Title: "kind dev eu"}), newSource(SourceOptions{Title: "日本"}), newSource(SourceOptions{Title: strings.Repeat("x", 300)})}
	setIDs(sources)
	var got []string
	for _, s := range sources {
		got = append(got, s.id)
	}
	if diff := cmp.Diff([]string{"kind-dev-eu", "kind-dev-eu-2", "cluster", strings.Repeat("x", 40)}, got); diff != "" {
		t.Error(diff)
	}
}

// The stylesheet and the script load nothing from elsewhere.
func TestAssets(t *testing.T) {
	for _, name := range []string{"app.css", "app.js"} {
		data, err := os.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`https?://|//[a-z]|@import|eval\(|innerHTML|document\.write`).FindString(string(data)); m != "" {
			t.Errorf("%s contains %q", name, m)
		}
	}
}
