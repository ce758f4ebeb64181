package recording_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// What holds no Secret is kept byte for byte; the data of a Secret never reaches the file.
func TestWriteRead(t *testing.T) {
	const plain = `{ "kind":"X",  "n": 1e3, "items":[{"object":{"kind":"ConfigMap","data":{"a":"b"}}}]}`
	const secret = `{"items":[{"object":{"kind":"Secret","data":{"token":"aHVudGVyMg=="},"stringData":{"p":"hunter2"},"metadata":{"name":"s",` +
		`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"hunter2","keep":"1"}}}}],"big":9007199254740993}`
	var file bytes.Buffer
	w := recording.NewWriter(&file)
	for _, c := range []recording.Call{{Path: "/a", Request: plain, Response: plain, Code: 200}, {Path: "/b", Request: secret, Response: secret}} {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(file.String(), "hunter2") || strings.Contains(file.String(), "aHVudGVyMg") {
		t.Errorf("a secret is in the file:\n%s", file.String())
	}
	calls, err := recording.Read(&file)
	if err != nil || len(calls) != 2 {
		t.Fatal(calls, err)
	}
	if calls[0].Request != plain || calls[0].Response != plain || calls[0].Redacted {
		t.Errorf("changed: %+v", calls[0])
	}
	want := `{"big":9007199254740993,"items":[{"object":{"data":{"token":"UkVEQUNURUQ="},"kind":"Secret",` +
		`"metadata":{"annotations":{"keep":"1"},"name":"s"},"stringData":{"p":"REDACTED"}}}]}`
	if d := cmp.Diff(want, calls[1].Request); d != "" || !calls[1].Redacted {
		t.Errorf("(-want +got):\n%s", d)
	}
	list, redacted := recording.Redact([]byte(`{"kind":"SecretList","items":[{"data":{"a":"aHVudGVyMg=="}}]}`))
	if want := `{"items":[{"data":{"a":"UkVEQUNURUQ="}}],"kind":"SecretList"}`; !redacted || string(list) != want {
		t.Errorf("a list of Secrets: %s", list)
	}
	if _, err := recording.Read(strings.NewReader("{}\nnonsense\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that is no call: %v", err)
	}
}

func TestObject(t *testing.T) {
	for body, want := range map[string]string{
		`{"cluster":{"metadata":{"namespace":"a","name":"b"}}}`:                               "Cluster a/b",
		`{"desired":{"machine":{"metadata":{"namespace":"a","name":"m"}}}}`:                   "Machine a/m",
		`{"desired":{"machineSet":{"metadata":{"namespace":"a","name":"m"}}}}`:                "MachineSet a/m",
		`{"variables":[{"name":"builtin","value":{"cluster":{"namespace":"a","name":"c"}}}]}`: "Cluster a/c",
		`{"variables":[{"name":"x","value":{"cluster":{"namespace":"a","name":"c"}}}]}`:       "",
		`{}`: "", `{`: "",
	} {
		if got := recording.Object([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][]string{
		"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery":                  {"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", "discovery", ""},
		"/pre/fix/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/my": {"/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/my", "generatepatches", "my"},
		"/healthz":                           nil,
		"/hooks.runtime.x/v1/a/b/too/long":   nil,
		"/hooks.runtime.cluster.x-k8s.io/v1": nil,
	} {
		own, hook, handler, ok := recording.Split(path)
		if ok != (want != nil) || ok && !cmp.Equal([]string{own, hook, handler}, want) {
			t.Errorf("%s: got %s %s %s %v", path, own, hook, handler, ok)
		}
	}
}

func TestCompare(t *testing.T) {
	patch := func(s string) string {
		return `{"items":[{"patch":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"}]}`
	}
	cases := map[string]struct {
		reason string
		was    recording.Call
		now    recording.Answer
		want   []string
	}{
		"same":       {"order and space do not count", recording.Call{Code: 200, Response: `{"a":1,"b":[2]}`}, recording.Answer{Code: 200, Body: []byte("{\"b\": [2], \"a\":1}\n")}, nil},
		"field":      {"the path says where", recording.Call{Code: 200, Response: `{"a":{"b":[1,2]}}`}, recording.Answer{Code: 200, Body: []byte(`{"a":{"b":[1]},"c":true}`)}, []string{"a.b[1]: 2 → nothing", "c: nothing → true"}},
		"code":       {"refused now", recording.Call{Code: 200, Response: `{}`}, recording.Answer{Code: 404, Body: []byte("gone\n")}, []string{"HTTP status: 200 → 404", `response: "{}" → "gone"`}},
		"no answer":  {"it crashes now", recording.Call{Code: 200, Response: `{}`}, recording.Answer{Error: "EOF"}, []string{"call: an answer → EOF"}},
		"both fail":  {"it crashed before", recording.Call{Error: "reset"}, recording.Answer{Error: "EOF"}, nil},
		"same patch": {"patches are JSON", recording.Call{Response: patch(`{"a":1,"b":2}`)}, recording.Answer{Body: []byte(patch(`{"b":2, "a":1}`))}, nil},
		"patch":      {"and are compared as such", recording.Call{Response: patch(`[{"op":"add","value":"x"}]`)}, recording.Answer{Body: []byte(patch(`[{"op":"add","value":"y"}]`))}, []string{`items[0].patch[0].value: "x" → "y"`}},
		"secret":     {"what was redacted is no difference", recording.Call{Response: `{"o":{"kind":"Secret","data":{"a":"UkVEQUNURUQ="}}}`}, recording.Answer{Body: []byte(`{"o":{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}}`)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, recording.Compare(tc.was, tc.now)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}
