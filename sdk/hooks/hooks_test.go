package hooks

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// TestDefaultIsWholeAPI compares the list with what the API module itself says: no hook is forgotten, none is invented, and
// requests and responses are of the same Go types and kinds.
func TestDefaultIsWholeAPI(t *testing.T) {
	theirs := upstream.New()
	if err := hooksv1.AddToCatalog(theirs); err != nil {
		t.Fatal(err)
	}
	types := theirs.AllKnownTypes()
	type facts struct {
		Request, Response, RequestKind, ResponseKind, Path string
		Singleton                                          bool
	}
	want, have := map[string]facts{}, map[string]facts{}
	for gvh, d := range theirs.AllKnownHooks() {
		want[gvh.String()] = facts{
			Request: types[d.Request].String(), Response: types[d.Response].String(), Singleton: d.Metadata.Singleton,
			RequestKind: d.Request.String(), ResponseKind: d.Response.String(), Path: upstream.GVHToPath(gvh, "My-Handler"), // RT-09
		}
	}
	for _, h := range Default().All() {
		request, response := h.Request(), h.NewResponse()
		h.StampResponse(response)
		gvh := upstream.GroupVersionHook{Group: h.Group, Version: h.Version, Hook: h.ID.Hook}
		have[gvh.String()] = facts{
			Request: reflect.TypeOf(request).Elem().String(), Response: reflect.TypeOf(response).Elem().String(), Singleton: h.Singleton,
			RequestKind:  request.GetObjectKind().GroupVersionKind().String(),
			ResponseKind: response.GetObjectKind().GroupVersionKind().String(), Path: h.Path("My-Handler"),
		}
		if h.Summary == "" || h.Description == "" || h.Tag == "" || !strings.HasSuffix(h.Summary, ".") {
			t.Errorf("%s: summary, description and tag are required", h.ID)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the catalog (+) differs from the API module (-):\n%s", diff)
	}
}

func TestPath(t *testing.T) { // RT-09
	if got, want := Discovery.Path(""), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"; got != want {
		t.Errorf("discovery is at %s, want %s", got, want)
	}
	got, want := v1alpha1("BeforeClusterCreate").Path("Check-It"), "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/check-it"
	if got != want {
		t.Errorf("a handler is at %s, want %s", got, want)
	}
}

func TestParseID(t *testing.T) {
	tests := map[string]struct {
		apiVersion, hook string
		want             ID
		err              string
	}{
		"a hook":         {apiVersion: Group + "/v1alpha1", hook: "Discovery", want: Discovery},
		"no group":       {apiVersion: "v1alpha1", hook: "Discovery", err: "want <group>/<version>"},
		"no version":     {apiVersion: Group + "/", hook: "Discovery", err: "want <group>/<version>"},
		"three parts":    {apiVersion: "a/b/c", hook: "Discovery", err: "want <group>/<version>"},
		"no hook":        {apiVersion: Group + "/v1alpha1", err: "has no name"},
		"nothing at all": {err: "want <group>/<version>"},
	}
	for name, tt := range tests {
		got, err := ParseID(tt.apiVersion, tt.hook)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
		if err == nil && got != tt.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Three versions of a made-up hook: what a request may say grew, and what a response says grew with it.
type (
	alphaRequest struct {
		metav1.TypeMeta `json:",inline"`
		Pod             string
	}
	betaRequest struct {
		metav1.TypeMeta `json:",inline"`
		Name, Namespace string
	}
	gaRequest struct {
		metav1.TypeMeta `json:",inline"`
		Key             struct{ Name, Namespace string }
	}
	alphaResponse struct {
		metav1.TypeMeta `json:",inline"`
		hooksv1.CommonResponse
		Node string
	}
	betaResponse struct {
		metav1.TypeMeta `json:",inline"`
		hooksv1.CommonResponse
		Nodes []string
	}
	gaResponse struct {
		metav1.TypeMeta `json:",inline"`
		hooksv1.CommonResponse
		Places map[string]int
	}
)

func (r *alphaRequest) DeepCopyObject() runtime.Object  { c := *r; return &c }
func (r *betaRequest) DeepCopyObject() runtime.Object   { c := *r; return &c }
func (r *gaRequest) DeepCopyObject() runtime.Object     { c := *r; return &c }
func (r *alphaResponse) DeepCopyObject() runtime.Object { c := *r; return &c }
func (r *betaResponse) DeepCopyObject() runtime.Object  { c := *r; return &c }
func (r *gaResponse) DeepCopyObject() runtime.Object    { c := *r; return &c }

func placing(v string) ID {
	return ID{Name: Name{Group: "test.slipway.dev", Hook: "Place"}, Version: v}
}

func placings() []Hook {
	return []Hook{
		{ID: placing("v1beta1"), NewRequest: request[betaRequest](), NewResponse: answer[betaResponse]()},
		{ID: placing("v1"), NewRequest: request[gaRequest](), NewResponse: answer[gaResponse]()},
		{ID: placing("v1alpha1"), NewRequest: request[alphaRequest](), NewResponse: answer[alphaResponse]()},
	}
}

func steps() []Conversion {
	return []Conversion{
		{
			Hook: placing("").Name, Newer: "v1", Older: "v1beta1",
			RequestDown: RequestDown(func(in *gaRequest, out *betaRequest) error {
				out.Name, out.Namespace = in.Key.Name, in.Key.Namespace
				return nil
			}),
			ResponseUp: ResponseUp(func(in *betaResponse, out *gaResponse) error {
				out.CommonResponse, out.Places = in.CommonResponse, map[string]int{}
				for i, node := range in.Nodes {
					out.Places[node] = i
				}
				return nil
			}),
		},
		{
			Hook: placing("").Name, Newer: "v1beta1", Older: "v1alpha1",
			RequestDown: RequestDown(func(in *betaRequest, out *alphaRequest) error {
				out.Pod = in.Namespace + "/" + in.Name
				return nil
			}),
			ResponseUp: ResponseUp(func(in *alphaResponse, out *betaResponse) error {
				out.CommonResponse, out.Nodes = in.CommonResponse, []string{in.Node}
				return nil
			}),
		},
	}
}

func TestConversion(t *testing.T) { // RT-16
	c, err := New(placings(), steps()...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1", "v1beta1", "v1alpha1"}, c.Versions(placing("").Name)); diff != "" {
		t.Errorf("versions, newest first:\n%s", diff)
	}
	newest := &gaRequest{}
	newest.Key.Name, newest.Key.Namespace = "web", "shop"
	down, err := c.Down(newest, placing("v1alpha1"))
	if err != nil {
		t.Fatal(err)
	}
	want := &alphaRequest{TypeMeta: metav1.TypeMeta{APIVersion: "test.slipway.dev/v1alpha1", Kind: "PlaceRequest"}, Pod: "shop/web"}
	if diff := cmp.Diff(want, down); diff != "" {
		t.Errorf("request, two versions down:\n%s", diff)
	}
	up := &gaResponse{}
	old := &alphaResponse{Node: "n1", CommonResponse: hooksv1.CommonResponse{Status: "Success", Message: "here"}}
	if err := c.Up(old, up); err != nil {
		t.Fatal(err)
	}
	wantUp := &gaResponse{
		TypeMeta:       metav1.TypeMeta{APIVersion: "test.slipway.dev/v1", Kind: "PlaceResponse"},
		CommonResponse: hooksv1.CommonResponse{Status: "Success", Message: "here"}, Places: map[string]int{"n1": 0},
	}
	if diff := cmp.Diff(wantUp, up); diff != "" {
		t.Errorf("response, two versions up:\n%s", diff)
	}
	same, err := c.Down(newest, placing("v1"))
	if err != nil || same != runtime.Object(newest) {
		t.Errorf("a request in its own version: %v, %v", same, err)
	}
	if _, err := c.Down(&alphaRequest{}, placing("v1")); err == nil {
		t.Error("an old request was made newer, which nothing says how to do")
	}
	if err := c.Up(&gaResponse{}, &alphaResponse{}); err == nil {
		t.Error("a new response was made older, which nothing says how to do")
	}
	if _, err := c.Down(newest, Discovery); err == nil {
		t.Error("a request became one of another hook")
	}
}

// RT-25
func TestNewRefuses(t *testing.T) {
	deprecate := func(v string, d Deprecation) []Hook {
		return []Hook{{ID: placing(v), NewRequest: request[gaRequest](), NewResponse: answer[gaResponse](), Deprecation: &d}}
	}
	deprecated := func(v string, d Deprecation) []Hook { // beside the other versions
		out := placings()
		for i := range out {
			if out[i].Version == v {
				out[i].Deprecation = &d
			}
		}
		return out
	}
	since := Release{Minor: "v1.14", Date: "2026-08-01"}
	tests := map[string]struct {
		reason string
		hooks  []Hook
		steps  []Conversion
		err    string
	}{
		"nothing wrong": {hooks: placings(), steps: steps()},
		"alpha goes at once": {
			reason: "alpha versions have no window",
			hooks:  deprecate("v1alpha1", Deprecation{Since: since, Removal: &since}),
		},
		"beta after two releases and half a year": {
			hooks: deprecated("v1beta1", Deprecation{Since: since, ReplacedBy: "v1", Removal: &Release{Minor: "v1.16", Date: "2027-02-01"}}), steps: steps(),
		},
		"beta one release too early": {
			hooks: deprecate("v1beta1", Deprecation{Since: since, Removal: &Release{Minor: "v1.15", Date: "2027-12-01"}}),
			err:   "removed 1 releases after its deprecation, beta versions are kept for 2",
		},
		"beta a day too early": {
			hooks: deprecate("v1beta1", Deprecation{Since: since, Removal: &Release{Minor: "v1.17", Date: "2027-01-31"}}),
			err:   "beta versions are kept for 6 months, until 2027-02-01",
		},
		"GA after three releases and a year": {
			reason: "the window is over, and the newest GA version may not go without a replacement",
			hooks:  deprecate("v1", Deprecation{Since: since, Removal: &Release{Minor: "v1.17", Date: "2027-08-01"}}),
			err:    "removed without a replacement, and it is the newest GA version",
		},
		"newest beta without a replacement": {
			hooks: deprecated("v1beta1", Deprecation{Since: since, Removal: &Release{Minor: "v1.16", Date: "2027-02-01"}}), steps: steps(),
			err: "removed without a replacement, and it is the newest beta version",
		},
		"deprecated, and when it goes is open": {
			hooks: deprecated("v1beta1", Deprecation{Since: since}), steps: steps(),
		},
		"a replacement that does not exist": {
			hooks: deprecated("v1beta1", Deprecation{Since: since, ReplacedBy: "v2"}), steps: steps(), err: `replaced by "v2", which is no version of the hook`,
		},
		"a replacement that is less stable": {
			reason: "no one has to leave a stable version for one that may change",
			hooks:  deprecated("v1", Deprecation{Since: since, ReplacedBy: "v1beta1"}), steps: steps(), err: "replaced by v1beta1, which is not newer, or less stable",
		},
		"a replacement by itself": {
			hooks: deprecated("v1", Deprecation{Since: since, ReplacedBy: "v1"}), steps: steps(), err: "replaced by v1, which is not newer",
		},
		"GA one release too early": {
			hooks: deprecate("v1", Deprecation{Since: since, Removal: &Release{Minor: "v1.16", Date: "2029-08-01"}}),
			err:   "GA versions are kept for 3",
		},
		"GA a day too early": {
			hooks: deprecate("v1", Deprecation{Since: since, Removal: &Release{Minor: "v1.18", Date: "2027-07-31"}}),
			err:   "GA versions are kept for 12 months",
		},
		"no date":        {hooks: deprecate("v1", Deprecation{Since: Release{Minor: "v1.14"}}), err: "is not YYYY-MM-DD"},
		"no release":     {hooks: deprecate("v1", Deprecation{Since: Release{Minor: "soon", Date: "2026-08-01"}}), err: "want v<major>.<minor>"},
		"twice":          {hooks: append(placings(), placings()[0]), err: "it is there twice"},
		"not a version":  {hooks: deprecate("newest", Deprecation{Since: since}), err: `"newest" is not a version`},
		"not connected":  {hooks: placings(), steps: steps()[:1], err: "no conversion connects v1beta1 and v1alpha1"},
		"a step too far": {hooks: placings(), steps: []Conversion{{Hook: placing("").Name, Newer: "v1", Older: "v1alpha1"}}, err: "not neighbours"},
		"connected twice": {
			hooks: placings(), steps: append(steps(), steps()[0]), err: "is there twice",
		},
		"same request": {
			hooks: []Hook{placings()[0], {ID: placing("v2"), NewRequest: request[betaRequest](), NewResponse: answer[gaResponse]()}},
			err:   "its request is that of",
		},
	}
	for name, tt := range tests {
		_, err := New(tt.hooks, tt.steps...)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s (%s): error %v, want %q", name, tt.reason, err, tt.err)
		}
	}
}

func TestDeprecationAdvice(t *testing.T) {
	tests := map[string]Deprecation{
		"use v1 instead":                                              {ReplacedBy: "v1"},
		"use v1 instead; it is removed in v1.20":                      {ReplacedBy: "v1", Removal: &Release{Minor: "v1.20"}},
		"the hook goes without a replacement; it is removed in v1.20": {Removal: &Release{Minor: "v1.20"}},
	}
	for want, d := range tests {
		if got := d.Advice(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestStability(t *testing.T) {
	for version, want := range map[string]Stability{"v1alpha1": Alpha, "v1beta12": Beta, "v1": GA, "v21": GA} {
		if got, ok := StabilityOf(version); !ok || got != want {
			t.Errorf("%s is %s, %t; want %s", version, got, ok, want)
		}
	}
	for _, version := range []string{"", "v0", "1", "v1gamma1", "v1alpha", "v1alpha0", "latest"} {
		if _, ok := StabilityOf(version); ok {
			t.Errorf("%q passes as a version", version)
		}
	}
}
