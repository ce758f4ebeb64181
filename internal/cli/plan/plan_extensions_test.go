package plan

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/plan"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patchesOf answers a GeneratePatches request: machines get the variable startup as their delay.
func patchesOf(w http.ResponseWriter, body []byte) {
	request := &hooksv1.GeneratePatchesRequest{}
	if err := json.Unmarshal(body, request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	response := &hooksv1.GeneratePatchesResponse{}
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	startup := "100ms"
	for _, v := range request.Variables {
		if v.Name == "startup" {
			startup = strings.Trim(string(v.Value.Raw), `"`)
		}
	}
	for _, item := range request.Items {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(item.Object.Raw); err == nil && object.GetKind() == "LocalMachineTemplate" {
			response.Items = append(response.Items, hooksv1.GeneratePatchesResponseItem{
				UID: item.UID, PatchType: hooksv1.JSONMergePatchType,
				Patch: fmt.Appendf(nil, `{"spec":{"template":{"spec":{"backend":{"simulated":{"startupDelay":%q}}}}}}`, startup),
			})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response)
}

// startMutation serves an extension that defines a variable, patches templates by it, and accepts every topology.
func startMutation(t *testing.T) *hooktest.Extension {
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("patches", "GeneratePatches"), func(w http.ResponseWriter, r *http.Request) {
		bodies := x.Bodies(r.URL.Path)
		patchesOf(w, bodies[len(bodies)-1])
	})
	x.Handle(hooktest.Handler("check", "ValidateTopology"), hooktest.Raw(`{"status":"Success"}`))
	x.Handle(hooktest.Handler("variables", "DiscoverVariables"), hooktest.Raw(
		`{"status":"Success","variables":[{"name":"startup","required":false,"schema":{"openAPIV3Schema":{"type":"string"}}}]}`))
	return x
}

// calls is how often the extension was asked for patches.
func calls(x *hooktest.Extension) int {
	return len(x.Bodies(hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "GeneratePatches"}, Version: "v1alpha1"}.Path("patches")))
}

// mutated is a management cluster with a class whose templates an extension patches, and a Cluster of it.
func mutated(t *testing.T, x *hooktest.Extension) (*live, *apiserver.Server) {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{})
	startManager(t, server)
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t: t, c: c, manifest: map[string]*unstructured.Unstructured{}}
	config := x.ExtensionConfig("ext")
	config.UID, config.Generation = "", 0
	l.until("the extension is registered", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), config)) })
	l.until("the extension is discovered", func() error {
		found := &runtimev1.ExtensionConfig{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(config), found); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(found.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition) {
			return fmt.Errorf("%+v", found.Status.Conditions)
		}
		return nil
	})
	objects, err := plan.ReadFiles([]string{"testdata/fleet.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		switch name := u.GetKind() + " " + u.GetName(); {
		case name == "ClusterClass simulated":
			unstructured.RemoveNestedField(u.Object, "spec", "variables")
			set(u, []any{map[string]any{"name": "mutate", "external": map[string]any{
				"generatePatchesExtension": "patches.ext", "validateTopologyExtension": "check.ext", "discoverVariablesExtension": "variables.ext",
			}}}, "spec", "patches")
		case name == "Cluster managed", strings.HasSuffix(name, "Template simulated"):
		default:
			continue
		}
		l.manifest[u.GetKind()+" "+u.GetName()] = u
		l.apply(u)
	}
	return l, server
}

// A plan asks the extensions that patch templates when it is told to, and then equals what happens. Without, it says what it does not
// know; an extension that does not answer is named.
func TestPlanWithExtensions(t *testing.T) { // TP-37, TM-01, TM-02, TM-03
	x := startMutation(t)
	l, server := mutated(t, x)
	before := l.rest("the cluster")
	managed := l.manifest["Cluster managed"]
	set(managed, []any{map[string]any{"name": "startup", "value": "150ms"}}, "spec", "topology", "variables")
	manifest, err := yaml.Marshal(managed.Object)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", "-", "--kubeconfig", server.Kubeconfig}

	asked := calls(x)
	text, code := slipwayAt(t, time.Now(), string(manifest), args...)
	for _, want := range []string{
		"Not called: extension patches.ext (GeneratePatches) for Cluster default/managed: the plan contains no effects of the topology, because the " +
			"patches of the extension are unknown. Use --call-extensions to call it.\n",
		"Not called: extension variables.ext (DiscoverVariables) for ClusterClass default/simulated: the plan uses the variables of its previous " +
			"response. Use --call-extensions to call it.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "LocalMachineTemplate") || code != exitChanges || calls(x) != asked {
		t.Errorf("exit code %d, %d calls:\n%s", code, calls(x)-asked, text)
	}

	text, code = slipwayAt(t, time.Now(), string(manifest), append(args, "--call-extensions")...)
	if !strings.Contains(text, "+ LocalMachineTemplate") || !strings.Contains(text, "2 replaced") || strings.Contains(text, "Not called") || code != exitChanges || calls(x) == asked {
		t.Errorf("exit code %d, %d calls:\n%s", code, calls(x)-asked, text)
	}
	text, _ = slipwayAt(t, time.Now(), string(manifest), append(args, "--call-extensions", "-o", "json")...)
	p := &plan.Plan{}
	if err := json.Unmarshal([]byte(text), p); err != nil || len(p.Unanswered) > 0 {
		t.Fatalf("%v %+v", err, p.Unanswered)
	}
	l.apply(managed)
	after := l.rest("the change")
	instances := instancesOfPools(before.Objects, after.Objects)
	want, got := canonical(p.Objects, instances), canonical(plan.Difference(before.Objects, after.Objects), instances)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-plan +what happened):\n%s", diff)
	}

	x.CloseClientConnections()
	x.Close()
	set(managed, []any{map[string]any{"name": "startup", "value": "250ms"}}, "spec", "topology", "variables")
	if manifest, err = yaml.Marshal(managed.Object); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	text, code = slipwayAt(t, time.Now(), string(manifest), append(args, "--call-extensions")...)
	if !strings.Contains(text, "No response: extension patches.ext (GeneratePatches) for Cluster default/managed: handler patches.ext: ") || code != exitChanges {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%s, although each question is asked once", took)
	}
	if text, code = slipwayAt(t, time.Now(), string(manifest), append(args, "--runtime-extension-client-key-file", "key.pem", "--call-extensions")...); code != 1 || !strings.Contains(text, "set both or none") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
