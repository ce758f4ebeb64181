package components

import (
	"context"
	"errors"
	"testing"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// A hook that gives up is called again, because its error would end kube-apiserver; the end of the server ends it without one.
func TestPatientHooks(t *testing.T) {
	calls := 0
	h := hook{name: "rbac/bootstrap-roles", run: func(genericapiserver.PostStartHookContext) error {
		if calls++; calls < 3 {
			return errors.New("unable to initialize roles: timed out waiting for the condition")
		}
		return nil
	}}
	if err := h.withRetries(0)(genericapiserver.PostStartHookContext{Context: t.Context()}); err != nil || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.run = func(genericapiserver.PostStartHookContext) error {
		cancel()
		return errors.New("timed out")
	}
	if err := h.withRetries(0)(genericapiserver.PostStartHookContext{Context: ctx}); err != nil {
		t.Errorf("a server that stops: %v", err)
	}
}
