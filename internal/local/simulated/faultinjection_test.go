package simulated

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

var started = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// host is a backend of one machine and one network, and what was done with them.
type host struct {
	backend.Machines
	backend.Networks
	machine backend.Machine
	ready   []bool
	creates int
	err     error
}

func (h *host) Capabilities(backend.MachineRequest) backend.Capabilities {
	return backend.Capabilities{Scripted: true}
}

func (h *host) CheckQuota(context.Context, backend.MachineSpec) (backend.Quota, error) {
	return backend.Quota{}, h.err
}

func (h *host) Inspect(context.Context, backend.Ref) (backend.Machine, error) {
	return h.machine, h.err
}

func (h *host) Create(context.Context, backend.MachineSpec) ([]string, error) {
	h.creates++
	return []string{"a note"}, h.err
}

func (h *host) FindNetwork(context.Context, backend.Ref) (backend.Network, bool, error) {
	return backend.Network{Name: "n"}, true, nil
}

func (h *host) SetReady(_ context.Context, _ backend.Ref, ready bool) error {
	h.ready, h.machine.Degraded = append(h.ready, ready), !ready
	return nil
}

func (h *host) SetFaults(_ context.Context, _ backend.Ref, faults string) error {
	h.machine.Faults = faults
	return nil
}

// with is the backend for an object with one annotation, this long after its machine was started.
func (h *host) with(annotation, value string, after time.Duration) backend.Backend {
	now := func() time.Time { return started.Add(after) }
	return WrapFaulty(backend.Backend{Machines: h, Networks: h}, now).Faults(map[string]string{annotation: value})
}

// What an annotation asks for is pending until the machine is created again, and then as it says.
func TestNotReadyAfter(t *testing.T) {
	const wanted, over = "an annotation requests that its Node is not ready", "no annotation requests any more that its Node is not ready"
	for name, tc := range map[string]struct {
		reason            string
		annotation, value string
		state             backend.MachineState
		degraded          bool
		after             time.Duration
		pending           string
		ready             []bool
	}{
		"nothing asked":     {"", "", "", backend.Running, false, time.Hour, "", nil},
		"not yet":           {"", infrav1.NotReadyAfterAnnotation, "1m", backend.Running, false, time.Minute - 1, "", nil},
		"time is up":        {"", infrav1.NotReadyAfterAnnotation, "1m", backend.Running, false, time.Minute, wanted, []bool{false}},
		"from the start":    {"zero is a time", infrav1.NotReadyAfterAnnotation, "0s", backend.Running, false, 0, wanted, []bool{false}},
		"as asked":          {"", infrav1.NotReadyAfterAnnotation, "1m", backend.Running, true, time.Hour, "", nil},
		"later than before": {"the time was made longer", infrav1.NotReadyAfterAnnotation, "2h", backend.Running, true, time.Hour, over, []bool{true}},
		"taken back":        {"the annotation is gone", "", "", backend.Running, true, time.Hour, over, []bool{true}},
		"does not run":      {"a machine that is stopped has no Node to speak for", infrav1.NotReadyAfterAnnotation, "1m", backend.Stopped, false, time.Hour, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{machine: backend.Machine{State: tc.state, Since: started, Degraded: tc.degraded}}
			b := h.with(tc.annotation, tc.value, tc.after)
			got, err := b.Machines.Inspect(t.Context(), backend.Ref{})
			if got.Pending != tc.pending || err != nil {
				t.Errorf("%s: pending %q, %v; want %q", tc.reason, got.Pending, err, tc.pending)
			}
			notes, err := b.Machines.Create(t.Context(), backend.MachineSpec{})
			if diff := cmp.Diff(tc.ready, h.ready); diff != "" || err != nil || h.creates != 1 || len(notes) != 1 {
				t.Errorf("%s: created %d times, %v, %v (-want +got):\n%s", tc.reason, h.creates, notes, err, diff)
			}
			if got, err := b.Machines.Inspect(t.Context(), backend.Ref{}); got.Pending != "" || err != nil {
				t.Errorf("it is as asked, and still pending: %s, %v", got.Pending, err)
			}
		})
	}
	h := &host{}
	if terms := h.with(infrav1.NotReadyAfterAnnotation, "1m", 0).Machines.Capabilities(backend.MachineRequest{}); terms.ChangesAfter != time.Minute || !terms.Scripted {
		t.Errorf("the controller does not look again when the time is up: %+v", terms)
	}
}

// An annotation that cannot be understood is said once the machine runs, and changes nothing.
func TestUnknown(t *testing.T) {
	for name, tc := range map[string]struct{ annotation, value, want string }{
		"not a time":      {infrav1.NotReadyAfterAnnotation, "soon", `The annotation simulated.infrastructure.slipway.dev/not-ready-after has "soon": use a time such as 30s`},
		"a negative time": {infrav1.NotReadyAfterAnnotation, "-1m", `The annotation simulated.infrastructure.slipway.dev/not-ready-after has "-1m": use a time such as 30s`},
		"misspelt": {"simulated.infrastructure.slipway.dev/not-ready-afer", "1m", "The annotation simulated.infrastructure.slipway.dev/not-ready-afer is not a known fault: use one of " +
			"simulated.infrastructure.slipway.dev/never-boots, simulated.infrastructure.slipway.dev/not-ready-after, " +
			"simulated.infrastructure.slipway.dev/control-plane-faults, simulated.infrastructure.slipway.dev/never-provisions"},
		"another's": {"example.org/not-ready-after", "soon", ""},
	} {
		h := &host{machine: backend.Machine{State: backend.Running, Since: started}}
		machines := h.with(tc.annotation, tc.value, time.Hour).Machines
		if got, err := machines.Inspect(t.Context(), backend.Ref{}); (got.Pending != "") != (tc.want != "") || err != nil {
			t.Errorf("%s: pending %q, %v", name, got.Pending, err)
		}
		_, err := machines.Create(t.Context(), backend.MachineSpec{})
		if tc.want == "" && err != nil || tc.want != "" && (fault.KindOf(err) != fault.Invalid || fault.UserMessage(err) != tc.want) || h.creates != 1 || h.ready != nil {
			t.Errorf("%s: got %v after %d creations, want %q; ready %v", name, err, h.creates, tc.want, h.ready)
		}
	}
}

// What is wrong with a control plane is asked for until it is so, on machines that run one.
func TestControlPlaneFaults(t *testing.T) {
	h := &host{machine: backend.Machine{State: backend.Running, Since: started}}
	b := h.with(infrav1.ControlPlaneFaultsAnnotation, "etcd-down", time.Minute)
	if got, err := b.Machines.Inspect(t.Context(), backend.Ref{}); got.Pending == "" || err != nil {
		t.Errorf("nothing is pending: %+v, %v", got, err)
	}
	for _, controlPlane := range []bool{false, true} {
		if _, err := b.Machines.Create(t.Context(), backend.MachineSpec{ControlPlane: controlPlane}); err != nil || (h.machine.Faults != "") != controlPlane {
			t.Errorf("control plane %t: %q, %v", controlPlane, h.machine.Faults, err)
		}
	}
	if got, err := b.Machines.Inspect(t.Context(), backend.Ref{}); got.Pending != "" || err != nil {
		t.Errorf("it is as asked, and still pending: %s, %v", got.Pending, err)
	}
}

// A machine that may not boot is refused a place, and one that was created before is not there until it has run.
func TestNeverBoots(t *testing.T) {
	for name, tc := range map[string]struct {
		value   string
		state   backend.MachineState
		want    backend.MachineState
		refused bool
	}{
		"created": {"", backend.Created, backend.Orphaned, true},
		"runs":    {"true", backend.Running, backend.Running, true},
		"absent":  {"", backend.Absent, backend.Absent, true},
		"allowed": {"false", backend.Created, backend.Created, false},
	} {
		h := &host{machine: backend.Machine{State: tc.state}}
		machines := h.with(infrav1.NeverBootsAnnotation, tc.value, 0).Machines
		if got, err := machines.Inspect(t.Context(), backend.Ref{}); got.State != tc.want || err != nil {
			t.Errorf("%s: it is %s, %v; want %s", name, got.State, err, tc.want)
		}
		room, err := machines.CheckQuota(t.Context(), backend.MachineSpec{})
		if err != nil || (room.Refusal != nil) != tc.refused || tc.refused && fault.KindOf(room.Refusal) != fault.Invalid {
			t.Errorf("%s: refused because of %v, %v", name, room.Refusal, err)
		}
	}
}

// A cluster that is never provisioned has no network; other clusters of the same backend do.
func TestNeverProvisions(t *testing.T) {
	h := &host{}
	if _, _, err := h.with(infrav1.NeverProvisionsAnnotation, "", 0).Networks.FindNetwork(t.Context(), backend.Ref{}); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("the network is found: %v", err)
	}
	for _, annotation := range []string{"", infrav1.NeverBootsAnnotation} {
		if n, found, err := h.with(annotation, "", 0).Networks.FindNetwork(t.Context(), backend.Ref{}); n.Name != "n" || !found || err != nil {
			t.Errorf("annotation %q: %+v, %t, %v", annotation, n, found, err)
		}
	}
}

// What the backend itself reports is not lost, and no fault is added to what failed.
func TestErrorsOfTheBackend(t *testing.T) {
	h := &host{err: errors.New("boom"), machine: backend.Machine{State: backend.Running, Since: started}}
	machines := h.with(infrav1.NotReadyAfterAnnotation, "0s", 0).Machines
	_, inspected := machines.Inspect(t.Context(), backend.Ref{})
	_, room := machines.CheckQuota(t.Context(), backend.MachineSpec{})
	notes, created := machines.Create(t.Context(), backend.MachineSpec{})
	if inspected == nil || room == nil || created == nil || len(notes) != 1 || h.ready != nil {
		t.Errorf("%v, %v, %v, %v, %v", inspected, room, created, notes, h.ready)
	}
}
