package extensiontest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// judged is a test that may fail.
type judged struct {
	testing.TB
	said []string
}

func (j *judged) Helper() {}
func (j *judged) Errorf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}
func (j *judged) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	runtime.Goexit()
}
func (j *judged) Fatal(args ...any) {
	j.said = append(j.said, fmt.Sprint(args...))
	runtime.Goexit()
}

// judge returns what a check says.
func judge(t *testing.T, check func(t testing.TB)) string {
	t.Helper()
	j := &judged{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(j)
	}()
	<-done
	return strings.Join(j.said, "\n")
}

// RT-23: a handler that answers the same question differently is found out.
func TestTwice(t *testing.T) {
	calls := 0
	x, err := extension.New(
		extension.On("counts", hooksv1.BeforeClusterCreate, func(_ context.Context, _ *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
			calls++
			out.Message = fmt.Sprint("call ", calls)
		}),
		extension.On("steady", hooksv1.AfterClusterUpgrade, func(_ context.Context, _ *hooksv1.AfterClusterUpgradeRequest, out *hooksv1.AfterClusterUpgradeResponse) {
			out.Message = "fine"
		}))
	if err != nil {
		t.Fatal(err)
	}
	got := judge(t, func(t testing.TB) {
		extensiontest.Twice[hooksv1.BeforeClusterCreateResponse](t, x, "counts", &hooksv1.BeforeClusterCreateRequest{})
	})
	if want := "handler \"counts\" answers the same request differently the second time:\nmessage: \"call 1\" → \"call 2\""; got != want || calls != 2 {
		t.Errorf("got %q after %d calls, want %q", got, calls, want)
	}
	if got := judge(t, func(t testing.TB) {
		if out := extensiontest.Twice[hooksv1.AfterClusterUpgradeResponse](t, x, "steady", &hooksv1.AfterClusterUpgradeRequest{}); out.Message != "fine" {
			t.Errorf("got %+v", out)
		}
	}); got != "" {
		t.Error(got)
	}
}

// RT-23: patches of what may not be changed are found out.
func TestAllowed(t *testing.T) {
	object := `{"apiVersion":"x/v1","kind":"T","metadata":{"name":"a"},"spec":{"template":{"spec":{"image":"a"}},"kept":{"b":1}}}`
	in := &hooksv1.GeneratePatchesRequest{Items: []hooksv1.GeneratePatchesRequestItem{{UID: "1", Object: apiruntime.RawExtension{Raw: []byte(object)}}}}
	cases := map[string]struct{ patch, want string }{
		"spec":        {`{"spec":{"template":{"spec":{"image":"b","new":{"a":[1]}}}}}`, ""},
		"labels":      {`{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, ""},
		"name":        {`{"metadata":{"name":"b"}}`, "template 1: a patch changes /metadata/name, which callers refuse"},
		"beside":      {`{"spec":{"kept":{"b":2}}}`, "changes /spec/kept/b"},
		"kind":        {`{"kind":"U"}`, "changes /kind"},
		"no spec":     {`{"spec":null}`, "changes /spec/kept/b"},
		"escaped":     {`{"spec":{"a/b~":1}}`, "changes /spec/a~1b~0"},
		"not a patch": {`3`, "template 1: "},
	}
	for name, tc := range cases {
		out := &hooksv1.GeneratePatchesResponse{Items: []hooksv1.GeneratePatchesResponseItem{
			{UID: types.UID("1"), PatchType: hooksv1.JSONMergePatchType, Patch: []byte(tc.patch)},
		}}
		got := judge(t, func(t testing.TB) { extensiontest.Allowed(t, in, out) })
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: want %q, got %q", name, tc.want, got)
		}
	}
}

// RT-23: patches of an in-place update that cannot be used are found out, and what they leave.
func TestUncovered(t *testing.T) {
	in := &hooksv1.CanUpdateMachineRequest{}
	in.Current.InfrastructureMachine.Raw = []byte(`{"kind":"M","status":{"a":1},"spec":{"a":1,"b":1}}`)
	in.Desired.InfrastructureMachine.Raw = []byte(`{"kind":"M","status":{"a":2},"spec":{"a":2,"b":2}}`)
	cases := map[string]struct {
		patch, want string
		left        []string
	}{
		"one":     {`{"spec":{"a":2}}`, "", []string{"infrastructureMachine /spec/b"}},
		"both":    {`{"spec":{"a":2,"b":2}}`, "", nil},
		"status":  {`{"status":{"a":2}}`, "infrastructureMachinePatch changes /status/a; a patch is for /spec only", []string{"infrastructureMachine /spec/a", "infrastructureMachine /spec/b"}},
		"broken":  {`{`, "infrastructureMachinePatch: ", nil},
		"nothing": {``, "", []string{"infrastructureMachine /spec/a", "infrastructureMachine /spec/b"}},
	}
	for name, tc := range cases {
		out := &hooksv1.CanUpdateMachineResponse{}
		if tc.patch != "" {
			out.InfrastructureMachinePatch = hooksv1.Patch{PatchType: hooksv1.JSONMergePatchType, Patch: []byte(tc.patch)}
		}
		var left []string
		got := judge(t, func(t testing.TB) { left = extensiontest.Uncovered(t, in, out) })
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || !slices.Equal(left, tc.left) {
			t.Errorf("%s: got %q and left %q", name, got, left)
		}
	}
}

// UP-02: a plan that a caller refuses is found out.
func TestPlan(t *testing.T) {
	in := &hooksv1.GenerateUpgradePlanRequest{FromControlPlaneKubernetesVersion: "v1.30.0", ToKubernetesVersion: "v1.31.0"}
	if got := judge(t, func(t testing.TB) { extensiontest.Plan(t, in, &hooksv1.GenerateUpgradePlanResponse{}) }); !strings.Contains(got, "the plan cannot be used: controlPlaneUpgrades ends with v1.30.0") {
		t.Errorf("got %q", got)
	}
	good := &hooksv1.GenerateUpgradePlanResponse{ControlPlaneUpgrades: []hooksv1.UpgradeStep{{Version: "v1.31.0"}}}
	if got := judge(t, func(t testing.TB) { extensiontest.Plan(t, in, good) }); got != "" {
		t.Errorf("got %q", got)
	}
}

// placement is a hook of a catalog of one's own.
type placementRequest struct {
	hooksv1.BeforeClusterCreateRequest
}

func (p *placementRequest) DeepCopyObject() apiruntime.Object { c := *p; return &c }

type placementResponse struct {
	hooksv1.BeforeClusterCreateResponse
}

func (p *placementResponse) DeepCopyObject() apiruntime.Object { c := *p; return &c }

func placement(*placementRequest, *placementResponse) {}

// RT-16, RT-23: handlers of a catalog of one's own are called and discovered in tests like any other.
func TestOtherCatalog(t *testing.T) {
	c, err := hooks.New(append(hooks.ClusterAPI(), hooks.Hook{
		ID:         hooks.ID{Name: hooks.Name{Group: "hooks.runtime.example.org", Hook: "Placement"}, Version: "v1"},
		NewRequest: func() apiruntime.Object { return &placementRequest{} }, NewResponse: func() hooks.Response { return &placementResponse{} },
	}))
	if err != nil {
		t.Fatal(err)
	}
	x, err := extension.NewFor(c, extension.On("where", placement, func(_ context.Context, in *placementRequest, out *placementResponse) {
		out.Message = in.Kind
	}))
	if err != nil {
		t.Fatal(err)
	}
	if out := extensiontest.Call[placementResponse](t, x, "where", &placementRequest{}); out.Message != "PlacementRequest" || out.APIVersion != "hooks.runtime.example.org/v1" {
		t.Errorf("got %+v", out)
	}
	if d := extensiontest.Discover(t, x); len(d.Handlers) != 1 || d.Handlers[0].RequestHook.Hook != "Placement" {
		t.Errorf("got %+v", d)
	}
}
