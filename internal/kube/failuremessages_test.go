package kube

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestRefusals(t *testing.T) {
	hosts := schema.GroupResource{Group: "infra", Resource: "hosts"}
	denied := func(name string) error {
		return fmt.Errorf("creating Host ns/%s: %w", name, apierrors.NewForbidden(hosts, name, errors.New("ValidatingAdmissionPolicy 'p' denied request: no huge machines")))
	}
	long := apierrors.NewBadRequest(strings.Repeat("x", 1000) + "\x00\n* Ready")
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"refused": {"the cause, without a name that changes", denied("ms-abcde"),
			[]string{"hosts.infra is forbidden: ValidatingAdmissionPolicy 'p' denied request: no huge machines"}},
		"several refused": {"a cause is said once", errors.Join(denied("ms-abcde"), errors.Join(denied("ms-vwxyz"), errors.New("cleaning up"))),
			[]string{"an unexpected error, which is in the log", "hosts.infra is forbidden: ValidatingAdmissionPolicy 'p' denied request: no huge machines"}},
		"named by a webhook": {"in whatever way", apierrors.NewForbidden(hosts, "", errors.New("no host may be called ms-abcde")),
			[]string{"hosts.infra is forbidden: no host may be called NAME"}},
		"quota": {"what is exceeded", apierrors.NewForbidden(hosts, "ms-abcde", errors.New("exceeded quota: q, requested: count/hosts.infra=1")),
			[]string{"hosts.infra is forbidden: exceeded quota: q, requested: count/hosts.infra=1"}},
		"internal": {"an address in it may change each time", apierrors.NewInternalError(errors.New("dial tcp 10.0.0.1:40123")), []string{"the API server reports InternalError"}},
		"webhook refused": {"which one is to be repaired, without its address", apierrors.NewInternalError(errors.New(`failed calling webhook "machines.policy.corp.example": failed to call webhook: Post "https://user:secret@10.0.0.1:8443/?timeout=10s": dial tcp 10.0.0.1:8443: connect: connection refused`)),
			[]string{`failed calling webhook "machines.policy.corp.example": connection refused`}},
		"webhook expired": {"a time in it changes each time", apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": failed to call webhook: Post "https://x": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-30T18:00:00Z is after 2026-11-01T00:00:00Z`)),
			[]string{`failed calling webhook "a.b.c": certificate has expired or is not yet valid`}},
		"webhook of another cause": {"any text may change each time", apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c": token abc`)),
			[]string{`failed calling webhook "a.b.c": the log of the manager has the error`}},
		"webhook without a name": {"the message has another form", apierrors.NewInternalError(errors.New(`failed calling webhook "a b": x`)), []string{"the API server reports InternalError"}},
		"without a reason":       {"nothing is known", &apierrors.StatusError{ErrStatus: metav1.Status{Message: "x"}}, []string{"the API server reports an error"}},
		"network":                {"the same", &net.OpError{Op: "read", Err: errors.New("reset")}, []string{"the API server does not answer"}},
		"a fault": {"says what to do", fmt.Errorf("cloning: %w", fault.New(fault.Invalid, "Bad", "spec.template is missing; add it").From(errors.New("x"))),
			[]string{"spec.template is missing; add it"}},
		"endless": {"one line, of a bounded length", long, []string{strings.Repeat("x", maxRefusalLength) + " …"}},
		"lines":   {"no line of a condition can be made up", apierrors.NewBadRequest("bad\r\n* Ready\x1b[2J"), []string{"bad * Ready [2J"}},
		"none":    {"nothing failed", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FailureMessages(tc.err, "ms-abcde", "ms-vwxyz")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
