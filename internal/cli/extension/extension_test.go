package extension_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli/extension"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// slipway runs a verb of the group.
func slipway(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := extension.Command(term.Env{
		In: strings.NewReader(""), Out: &stdout, Err: &stderr, Now: time.Now,
		Getenv: func(string) string { return "" },
	})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&stdout)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String() + stderr.String(), err
}

// RT-22: the document is printed without a management cluster, in every form.
func TestOpenAPI(t *testing.T) {
	for format, want := range map[string]string{"": "openapi: 3.0.3", "json": `"openapi": "3.0.3"`, "yaml": "openapi: 3.0.3", "html": "<!DOCTYPE html>"} {
		args := []string{"openapi"}
		if format != "" {
			args = append(args, "-o", format)
		}
		if out, err := slipway(t, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("-o %s: %v\n%.300s", format, err, out)
		}
	}
}

// RT-23: an example is printed without a management cluster, in both forms; without a name the hooks are listed.
func TestExample(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"example", "BeforeClusterUpgrade"}, []string{"# Called once before an upgrade begins", "kind: BeforeClusterUpgradeRequest", "toKubernetesVersion: v1.36.3"}},
		{[]string{"example", "can-update-machine", "-o", "json"}, []string{`"kind": "CanUpdateMachineRequest"`, `"infrastructureMachine": {`}},
		{[]string{"example"}, []string{"HOOK", "BeforeClusterDelete           yes", "GeneratePatches               no"}},
		{[]string{"example", "-o", "yaml"}, []string{"- apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook: BeforeClusterDelete"}},
	} {
		out, err := slipway(t, tc.args...)
		for _, want := range tc.want {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%q: %v, want %q in\n%.900s", tc.args, err, want, out)
			}
		}
	}
}

func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	out, err := slipway(t, "init", "quota")
	if err != nil || !strings.Contains(out, "cd quota\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if data, err := os.ReadFile("quota/go.mod"); err != nil || !strings.HasPrefix(string(data), "module example.com/quota\n") {
		t.Errorf("go.mod: %s %v", data, err)
	}
	if err := os.WriteFile("quota/third_party/slipway-sdk/go.mod", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0 files added, 1 changed, 0 removed", "has the SDK of this binary already"} {
		if out, err := slipway(t, "update", "quota"); err != nil || !strings.Contains(out, want) {
			t.Errorf("update: %v, want %q in\n%s", err, want, out)
		}
	}
	if out, err := slipway(t, "init", "backup", "--hook", "before-cluster-delete,AfterClusterUpgrade"); err != nil || !strings.Contains(out, "before_cluster_delete.go") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := slipway(t, "init", "quota"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder that is full: %v", err)
	}
}

// What is wrong with a command line is said before anything is started.
func TestUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	recorded := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(recorded, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"example of no hook":         {[]string{"example", "x"}, "BeforeClusterDelete"},
		"refresh without a name":     {[]string{"refresh"}, "EXTENSION"},
		"call without a request":     {[]string{"call", "x"}, "name its file with -f"},
		"call with a missing file":   {[]string{"call", "x", "-f", missing}, "kubeconfig: no such file"},
		"record without a file":      {[]string{"record", "--", "true"}, `the file of the recording is missing before "--"`},
		"record into a file":         {[]string{"record", recorded, "--", "true"}, "calls.jsonl: file exists"},
		"replay without a file":      {[]string{"replay", "--", "true"}, `the file of the recording is missing before "--"`},
		"replay of a missing file":   {[]string{"replay", missing, "--", "true"}, "kubeconfig: no such file"},
		"replay without a command":   {[]string{"replay", recorded}, "no command was given"},
		"list without a cluster":     {[]string{"list", "--kubeconfig", missing}, "cannot be used"},
		"run without a cluster":      {[]string{"run", "--kubeconfig", missing, "--", "true"}, "cannot be used"},
		"delete without a cluster":   {[]string{"delete", "x", "--kubeconfig", missing}, "cannot be used"},
		"delete without a name":      {[]string{"delete"}, "needs one argument, EXTENSION"},
		"a verb that does not exist": {[]string{"start"}, "list, openapi, record, refresh, replay, run, update"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := slipway(t, tc.args...); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A recording is repeated against another build; differences are shown, and are an error.
func TestReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	const python = "../../../examples/extension-python/extension.py"
	const kind = `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRe`
	w := recording.NewWriter(f)
	for _, wait := range []string{"10", "60"} {
		err := w.Write(recording.Call{
			Path: "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/check-owner", Hook: "beforeclustercreate", Handler: "check-owner",
			Code: 200, Object: "Cluster a/b", Request: `{` + kind + `quest","cluster":{"metadata":{"name":"b","namespace":"a"}}}`,
			Response: `{` + kind + `sponse","status":"Success","message":"the Cluster needs the label example.com/owner","retryAfterSeconds":` + wait + `}`,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := slipway(t, "replay", file, "--", "python3", python)
	if err == nil || err.Error() != "1 of 2 responses differ" {
		t.Errorf("got %v\n%s", err, out)
	}
	for _, want := range []string{"1  BeforeClusterCreate  check-owner  Cluster a/b  same", "2  BeforeClusterCreate  check-owner  Cluster a/b  differs", "    retryAfterSeconds: 60 → 10\n", "2 calls repeated, 1 responses differ."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, err = slipway(t, "replay", file, "--handler", "other", "-o", "json", "--", "python3", python)
	if fault.KindOf(err) != fault.Gone {
		t.Errorf("a handler that was not recorded: %v\n%s", err, out)
	}
	out, _ = slipway(t, "replay", file, "-o", "json", "--", "python3", python)
	var results []map[string]any
	if err := json.Unmarshal([]byte(out[:strings.LastIndex(out, "]")+1]), &results); err != nil || len(results) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
