package simulated

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// servers is a backend of one control plane, and what is wrong with it.
type servers struct {
	backend.ControlPlanes
	plane  backend.ControlPlane
	faults simulated.Faults
	starts int
	err    error
}

func (s *servers) Capabilities(policy.Configuration) backend.Capabilities {
	return backend.Capabilities{Started: &backend.ControlPlane{Running: true, Ready: true}}
}

func (s *servers) Status(context.Context, string) (backend.ControlPlane, error) {
	return s.plane, s.err
}

func (s *servers) Start(context.Context, string, processconfig.Config, map[string][]byte) error {
	s.starts++
	return s.err
}

func (s *servers) Faults(string) simulated.Faults { return s.faults }

func (s *servers) SetFaults(_ string, f simulated.Faults) { s.faults = f }

func (s *servers) annotated(annotations map[string]string) backend.ControlPlanes {
	return WithFaults(backend.Backend{ControlPlanes: s}, s).Faults(annotations)
}

// What the annotations ask for is pending until the control plane is started again, and then as they say.
func TestPending(t *testing.T) {
	cases := map[string]struct {
		reason            string
		annotation, value string
		current, want     simulated.Faults
		pending           string
	}{
		"nothing": {"", "", "", simulated.Faults{}, simulated.Faults{}, ""},
		"to be slow": {"", hostedv1.APISlowAnnotation, "2s", simulated.Faults{}, simulated.Faults{Slow: 2 * time.Second},
			"make the API server unreachable for 0s and slower by 2s: the annotations request it"},
		"to be down": {"", hostedv1.APIDownAnnotation, "always", simulated.Faults{}, simulated.Faults{Down: -1},
			"make the API server unreachable forever and slower by 0s: the annotations request it"},
		"to fail": {"", hostedv1.APIErrorsAnnotation, "503", simulated.Faults{}, simulated.Faults{Status: 503},
			"make the API server unreachable for 0s and slower by 0s, and respond with status 503: the annotations request it"},
		"as asked": {"", hostedv1.APIDownAnnotation, "30s", simulated.Faults{Down: 30 * time.Second}, simulated.Faults{Down: 30 * time.Second}, ""},
		"right again": {"the annotation is gone", "", "", simulated.Faults{Slow: time.Second}, simulated.Faults{},
			"make the API server unreachable for 0s and slower by 0s: the annotations request it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &servers{plane: backend.ControlPlane{Running: true, Ready: true}, faults: tc.current}
			planes := s.annotated(map[string]string{tc.annotation: tc.value})
			got, err := planes.Status(t.Context(), "ns.p")
			if diff := cmp.Diff(tc.pending, got.Pending); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if err := planes.Start(t.Context(), "ns.p", processconfig.Config{}, nil); err != nil || s.starts != 1 || s.faults != tc.want {
				t.Errorf("%s: started %d times, %+v, %v", tc.reason, s.starts, s.faults, err)
			}
			if got, err := planes.Status(t.Context(), "ns.p"); got.Pending != "" || err != nil {
				t.Errorf("it is as asked, and still pending: %s, %v", got.Pending, err)
			}
		})
	}
}

// An annotation that cannot be understood is said, and changes nothing; what others ask for is done.
func TestUnknown(t *testing.T) {
	for name, tc := range map[string]struct{ annotation, value, want string }{
		"not an error": {hostedv1.APIErrorsAnnotation, "200", `The annotation simulated.controlplane.slipway.dev/api-errors has "200": use an HTTP status from 400 to 599`},
		"not a time":   {hostedv1.APISlowAnnotation, "banana", `The annotation simulated.controlplane.slipway.dev/api-slow has "banana": use a time such as 500ms`},
		"negative":     {hostedv1.APIDownAnnotation, "-2s", `The annotation simulated.controlplane.slipway.dev/api-down has "-2s": use a time such as 1m, or always`},
		"misspelt": {"simulated.controlplane.slipway.dev/api-slwo", "1s", "The annotation simulated.controlplane.slipway.dev/api-slwo is not known: " +
			"use simulated.controlplane.slipway.dev/api-down, simulated.controlplane.slipway.dev/api-slow or simulated.controlplane.slipway.dev/api-errors"},
		"another's": {"example.org/api-slow", "banana", ""},
	} {
		s := &servers{plane: backend.ControlPlane{Running: true, Ready: true}}
		annotations := map[string]string{hostedv1.APIDownAnnotation: "1m"}
		annotations[tc.annotation] = tc.value
		planes := s.annotated(annotations)
		err := planes.Start(t.Context(), "ns.p", processconfig.Config{}, nil)
		if tc.want == "" && err != nil || tc.want != "" && (fault.KindOf(err) != fault.Invalid || fault.UserMessage(err) != tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if want := tc.annotation != hostedv1.APIDownAnnotation; (s.faults.Down == time.Minute) != want || s.faults.Slow != 0 || s.faults.Status != 0 || s.starts != 1 {
			t.Errorf("%s: %+v after %d starts", name, s.faults, s.starts)
		}
		if got, err := planes.Status(t.Context(), "ns.p"); got.Pending != "" || (got.InvalidRequest != "") != (tc.want != "") || err != nil {
			t.Errorf("%s: pending is %q, unclear %q, so that it is not said again, or always changed: %v", name, got.Pending, got.InvalidRequest, err)
		}
	}
}

// Only what annotations do is said to be theirs.
func TestProblem(t *testing.T) {
	down := simulated.Faults{Down: time.Second}
	for name, tc := range map[string]struct {
		plane  backend.ControlPlane
		faults simulated.Faults
		want   string
	}{
		"down": {backend.ControlPlane{Running: true}, down, "The API server does not respond, because annotation " + hostedv1.APIDownAnnotation + " makes it unreachable"},
		"errors": {backend.ControlPlane{Running: true, Ready: true}, simulated.Faults{Status: 500},
			"The API server responds to every request with status 500, because annotation " + hostedv1.APIErrorsAnnotation + " requests it"},
		"over":          {backend.ControlPlane{Running: true, Ready: true}, down, ""},
		"down for more": {backend.ControlPlane{Running: true}, simulated.Faults{}, ""},
		"not started":   {backend.ControlPlane{}, down, ""},
	} {
		s := &servers{plane: tc.plane, faults: tc.faults}
		if got, err := s.annotated(nil).Status(t.Context(), "ns.p"); got.Problem != tc.want || got.Ready && tc.want != "" || err != nil {
			t.Errorf("%s: got %q, %v, %v", name, got.Problem, got.Ready, err)
		}
	}
}

// One that starts unreachable is not said to answer, and one that cannot be started or read is left as it is.
func TestStarted(t *testing.T) {
	s := &servers{}
	down := s.annotated(map[string]string{hostedv1.APIDownAnnotation: "always"})
	if !s.annotated(nil).Capabilities(policy.Configuration{}).Started.Ready || down.Capabilities(policy.Configuration{}).Started.Ready {
		t.Error("it answers once it is started, unless it is to be unreachable")
	}
	s.err = errors.New("boom")
	if err := down.Start(t.Context(), "ns.p", processconfig.Config{}, nil); err == nil || s.faults != (simulated.Faults{}) {
		t.Errorf("%v, %+v", err, s.faults)
	}
	if _, err := down.Status(t.Context(), "ns.p"); err == nil {
		t.Error("an error is lost")
	}
}
