package inplace_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/extension/inplace"
)

const (
	core  = "cluster.x-k8s.io/v1beta2"
	infra = "infrastructure.example.org/v1"
)

// machine is the kind of a provider, which knows some of the fields only.
type machine struct {
	Spec struct {
		Memory int    `json:"memory"`
		Image  string `json:"image,omitempty"`
	} `json:"spec"`
	Status map[string]string `json:"status,omitempty"`
}

func grow(_ context.Context, current, desired *machine) error {
	if desired.Spec.Memory > 64 {
		return errors.New("at most 64 GiB can be added")
	}
	current.Spec.Memory = max(current.Spec.Memory, desired.Spec.Memory)
	current.Status = map[string]string{"not": "in the spec"}
	return nil
}

func updater() inplace.Updater {
	return inplace.Updater{Rules: []inplace.Rule{
		inplace.Fields(core, "Machine", "version", "taints"),
		inplace.For(infra, "ExampleMachine", grow),
		inplace.Fields(infra, "ExampleMachine", "disks.data", "label"),
		inplace.Fields("infrastructure.example.org/v2", "ExampleMachine", "image"),
		inplace.For(infra, "ExampleMachineTemplate", func(_ context.Context, current, desired *struct {
			Spec struct {
				Template struct {
					Spec struct {
						Memory int `json:"memory"`
					} `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
		}) error {
			current.Spec.Template.Spec.Memory = max(current.Spec.Template.Spec.Memory, desired.Spec.Template.Spec.Memory)
			return nil
		}),
	}}
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func request(current, desired string) *hooksv1.CanUpdateMachineRequest {
	in := &hooksv1.CanUpdateMachineRequest{}
	in.Current.InfrastructureMachine, in.Desired.InfrastructureMachine = raw(current), raw(desired)
	in.Current.Machine.Spec = clusterv1.MachineSpec{ClusterName: "demo", Version: "v1.35.0"}
	in.Desired.Machine.Spec = clusterv1.MachineSpec{ClusterName: "demo", Version: "v1.36.0"}
	return in
}

func object(spec string) string {
	return `{"apiVersion":"` + infra + `","kind":"ExampleMachine","metadata":{"name":"m"},"spec":` + spec + `}`
}

func newExtension(t *testing.T, u inplace.Updater) *extension.Extension {
	t.Helper()
	x, err := extension.New(
		extension.OnErr("machine", hooksv1.CanUpdateMachine, u.CanUpdateMachine),
		extension.OnErr("set", hooksv1.CanUpdateMachineSet, u.CanUpdateMachineSet),
	)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// RT-23: the patches hold what the rules take over, in both formats; the rest is left to new machines.
func TestCanUpdateMachine(t *testing.T) {
	cases := map[string]struct {
		reason, current, desired string
		left                     []string
	}{
		"all":         {"fields that the type does not know are kept", `{"memory":8,"serial":9007199254740993}`, `{"memory":16,"serial":9007199254740993}`, nil},
		"some":        {"less memory is not taken over", `{"memory":8,"label":"a"}`, `{"memory":4,"label":"b"}`, []string{"infrastructureMachine /spec/memory"}},
		"new field":   {"with what is above it", `{"memory":8}`, `{"memory":8,"disks":{"data":[{"size":1}]}}`, nil},
		"removed":     {"a field that is not there any more", `{"memory":8,"disks":{"data":[],"root":1}}`, `{"memory":8,"disks":{"root":1}}`, nil},
		"no rule":     {"an image is replaced with the machine; the rule is for v2", `{"memory":8,"image":"a"}`, `{"memory":8,"image":"b"}`, []string{"infrastructureMachine /spec/image"}},
		"nothing":     {"no change, no patch", `{"memory":8}`, `{"memory":8}`, nil},
		"no data yet": {"nothing to remove", `{"memory":8}`, `{"memory":8,"disks":{"root":1}}`, []string{"infrastructureMachine /spec/disks/root"}},
	}
	for name, tc := range cases {
		for _, format := range []hooksv1.PatchType{"", hooksv1.JSONMergePatchType} {
			t.Run(name+string(format), func(t *testing.T) {
				u := updater()
				u.Format = format
				in := request(object(tc.current), object(tc.desired))
				out := extensiontest.Twice[hooksv1.CanUpdateMachineResponse](t, newExtension(t, u), "machine", in)
				if out.Status != hooksv1.ResponseStatusSuccess {
					t.Fatal(out.Message)
				}
				if d := cmp.Diff(tc.left, extensiontest.Uncovered(t, in, out)); d != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, d)
				}
				if !out.MachinePatch.IsDefined() || out.BootstrapConfigPatch.IsDefined() || out.InfrastructureMachinePatch.IsDefined() != (name != "nothing" && name != "no rule" && name != "no data yet") {
					t.Errorf("%s: got %+v", tc.reason, out)
				}
			})
		}
	}
}

// RT-23: a rule of fields is for the templates of a MachineSet too, one with a type for those of its kind.
func TestCanUpdateMachineSet(t *testing.T) {
	in := &hooksv1.CanUpdateMachineSetRequest{}
	template := func(spec string) runtime.RawExtension {
		return raw(`{"apiVersion":"` + infra + `","kind":"ExampleMachineTemplate","spec":{"template":{"spec":` + spec + `}}}`)
	}
	in.Current.MachineSet.Spec.Template.Spec.Version, in.Desired.MachineSet.Spec.Template.Spec.Version = "v1.35.0", "v1.36.0"
	in.Current.InfrastructureMachineTemplate = template(`{"memory":8,"label":"a","image":"a"}`)
	in.Desired.InfrastructureMachineTemplate = template(`{"memory":9,"label":"b","image":"b"}`)
	in.Current.BootstrapConfigTemplate = raw(`{"apiVersion":"bootstrap.example.org/v1","kind":"ConfigTemplate","spec":{"template":{"spec":{"files":[]}}}}`)
	in.Desired.BootstrapConfigTemplate = raw(`{"apiVersion":"bootstrap.example.org/v1","kind":"ConfigTemplate","spec":{"template":{"spec":{"files":[1]}}}}`)
	out := extensiontest.Twice[hooksv1.CanUpdateMachineSetResponse](t, newExtension(t, updater()), "set", in)
	want := []string{"bootstrapConfigTemplate /spec/template/spec/files", "infrastructureMachineTemplate /spec/template/spec/image"}
	if d := cmp.Diff(want, extensiontest.Uncovered(t, in, out)); d != "" || out.Status != hooksv1.ResponseStatusSuccess {
		t.Errorf("(-want +got):\n%s%s", d, out.Message)
	}
}

// RT-23: an error leaves no half of the patches, and what is no object is said.
func TestCanUpdateMachineFails(t *testing.T) {
	for name, tc := range map[string]struct{ current, desired, want string }{
		"rule":    {object(`{"memory":8}`), object(`{"memory":65}`), "ExampleMachine: at most 64 GiB can be added"},
		"type":    {object(`{"memory":8}`), object(`{"memory":"x"}`), "ExampleMachine: reading the desired object as inplace_test.machine"},
		"list":    {`[]`, `[]`, "the request holds something else than an object"},
		"desired": {object(`{"label":"a"}`), ``, "ExampleMachine: reading the desired object"},
	} {
		t.Run(name, func(t *testing.T) {
			in, out := request(tc.current, tc.desired), &hooksv1.CanUpdateMachineResponse{}
			err := updater().CanUpdateMachine(t.Context(), in, out)
			if err == nil || !strings.Contains(err.Error(), tc.want) || out.MachinePatch.IsDefined() {
				t.Errorf("got %v, %+v", err, out)
			}
		})
	}
}

// RT-23: the steps of an update are answers that hold back, that end, and that fail.
func TestUpdateMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		progress inplace.Progress
		err      error
		want     string
	}{
		"done":  {inplace.Done(), nil, `{"status":"Success","retryAfterSeconds":0}`},
		"again": {inplace.Again(10*time.Second, "growing"), nil, `{"status":"Success","message":"growing","retryAfterSeconds":10}`},
		"soon":  {inplace.Again(0, "growing"), nil, `{"status":"Success","message":"growing","retryAfterSeconds":1}`},
		"fails": {inplace.Again(time.Minute, "growing"), errors.New("no such disk"), `{"status":"Failure","message":"no such disk","retryAfterSeconds":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := extension.New(extension.OnErr("update", hooksv1.UpdateMachine, inplace.UpdateMachine(
				func(_ context.Context, desired hooksv1.UpdateMachineRequestObjects) (inplace.Progress, error) {
					m, err := inplace.Decode[machine](desired.InfrastructureMachine)
					if err != nil || m.Spec.Memory != 16 {
						t.Errorf("the machine is %+v, %v", m, err)
					}
					if _, err := inplace.Decode[machine](desired.BootstrapConfig); err == nil {
						t.Error("there is no bootstrap config")
					}
					return tc.progress, tc.err
				})))
			if err != nil {
				t.Fatal(err)
			}
			in := &hooksv1.UpdateMachineRequest{}
			in.Desired.InfrastructureMachine = raw(object(`{"memory":16}`))
			out := extensiontest.Call[hooksv1.UpdateMachineResponse](t, x, "update", in)
			got, err := json.Marshal(out.CommonRetryResponse)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
